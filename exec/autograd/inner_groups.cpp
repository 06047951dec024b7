#include "exec/autograd/inner_groups.h"

#include <numeric>
#include <utility>

#include "exec/autograd/beside.h"
#include "shared/error.h"

namespace polyphony::exec {
namespace {

std::vector<std::int64_t> elements(const torch::Tensor& like,
                                   const std::vector<std::int64_t>& rows) {
  std::int64_t width = 1;
  for (std::int64_t d = 1; d < like.dim(); ++d) width *= like.size(d);
  std::vector<std::int64_t> counts;
  for (const std::int64_t count : rows) counts.push_back(count * width);
  return counts;
}

torch::Tensor empty_rows(const torch::Tensor& like, std::int64_t rows) {
  std::vector<std::int64_t> shape = like.sizes().vec();
  shape[0] = rows;
  return torch::empty(shape, like.options());
}

std::vector<std::int64_t> equal_parts(std::int64_t elements, int members) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(members), elements);
}

std::int64_t sum(const std::vector<std::int64_t>& rows) {
  return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
}

}  // namespace

void InnerGroup::note(CollectiveKind kind, const torch::Tensor& tensor) {
  record_.push_back(
      {kind, Bytes(tensor.numel() * static_cast<std::int64_t>(tensor.element_size())), kind_});
}

template <class Alone, class Queued>
void InnerGroup::run(const torch::Tensor& moved, const BesideIt& beside, Alone alone,
                     Queued queued) {
  if (!beside) return alone();
  if (!moved.is_cpu()) return queued();
  exec::beside(moved.device(), {[&](const BesideIt&) { alone(); }}, beside);
}

void InnerGroup::all_reduce(torch::Tensor& tensor, Reduction reduction, const BesideIt& beside) {
  if (size() == 1) return beside ? beside() : void();
  POLYPHONY_CHECK(tensor.is_contiguous(), tensor.sizes());
  note(reduction == Reduction::sum ? CollectiveKind::all_reduce : CollectiveKind::all_reduce_max,
       tensor);
  run(
      tensor, beside, [&] { communicator_->all_reduce(tensor, reduction); },
      [&] { communicator_->all_reduce_beside(tensor, reduction, beside); });
}

void InnerGroup::gather(const torch::Tensor& mine, torch::Tensor& all,
                        const std::vector<std::int64_t>& elements, const BesideIt& beside) {
  note(CollectiveKind::all_gather, all);
  run(
      mine, beside, [&] { communicator_->all_gather(mine, all, elements); },
      [&] { communicator_->all_gather_beside(mine, all, elements, beside); });
}

void InnerGroup::scatter(const torch::Tensor& all, torch::Tensor& mine,
                         const std::vector<std::int64_t>& elements, const BesideIt& beside) {
  note(CollectiveKind::reduce_scatter, all);
  run(
      all, beside, [&] { communicator_->reduce_scatter(all, mine, elements); },
      [&] { communicator_->reduce_scatter_beside(all, mine, elements, beside); });
}

torch::Tensor InnerGroup::all_gather(const torch::Tensor& mine,
                                     const std::vector<std::int64_t>& rows,
                                     const BesideIt& beside) {
  if (size() == 1) {
    if (beside) beside();
    return mine;
  }
  const torch::Tensor part = mine.contiguous();
  torch::Tensor all = empty_rows(part, sum(rows));
  gather(part, all, elements(part, rows), beside);
  return all;
}

torch::Tensor InnerGroup::reduce_scatter(const torch::Tensor& all,
                                         const std::vector<std::int64_t>& rows,
                                         const BesideIt& beside) {
  if (size() == 1) {
    if (beside) beside();
    return all;
  }
  const torch::Tensor whole = all.contiguous();
  torch::Tensor mine = empty_rows(whole, rows[static_cast<std::size_t>(index())]);
  scatter(whole, mine, elements(whole, rows), beside);
  return mine;
}

void InnerGroup::all_gather_into(const torch::Tensor& mine, torch::Tensor& all,
                                 const BesideIt& beside) {
  gather(mine, all, equal_parts(mine.numel(), size()), beside);
}

void InnerGroup::reduce_scatter_into(const torch::Tensor& all, torch::Tensor& mine,
                                     const BesideIt& beside) {
  scatter(all, mine, equal_parts(mine.numel(), size()), beside);
}

torch::Tensor InnerGroup::all_to_all(const torch::Tensor& send,
                                     const std::vector<std::int64_t>& send_rows,
                                     const std::vector<std::int64_t>& receive_rows,
                                     std::int64_t recorded_rows) {
  if (size() == 1) return send;
  const torch::Tensor whole = send.contiguous();
  torch::Tensor receive = empty_rows(whole, sum(receive_rows));
  communicator_->all_to_all(whole, receive, elements(whole, send_rows),
                            elements(whole, receive_rows));
  const std::int64_t recorded = elements(whole, {recorded_rows}).front();
  record_.push_back({CollectiveKind::all_to_all,
                     Bytes(recorded * static_cast<std::int64_t>(whole.element_size())), kind_});
  return receive;
}

torch::Tensor InnerGroup::pass_on(const torch::Tensor& mine, std::int64_t rows,
                                  const BesideIt& beside) {
  const auto ranks = static_cast<std::size_t>(size()), self = static_cast<std::size_t>(index());
  std::vector<std::int64_t> out(ranks), in(ranks);
  out[(self + 1) % ranks] = mine.size(0);
  in[(self + ranks - 1) % ranks] = rows;
  const torch::Tensor part = mine.contiguous();
  torch::Tensor arrived = empty_rows(part, rows);
  const std::vector<std::int64_t> sent = elements(part, out), received = elements(part, in);
  run(
      part, beside, [&] { communicator_->all_to_all(part, arrived, sent, received); },
      [&] { communicator_->all_to_all_beside(part, arrived, sent, received, beside); });
  return arrived;
}

void InnerGroup::note_round(const torch::Tensor& like, std::int64_t rows) {
  record_.push_back(
      {CollectiveKind::all_gather,
       Bytes(elements(like, {rows}).front() * static_cast<std::int64_t>(like.element_size())),
       kind_});
}

torch::Tensor InnerGroup::on_host(const torch::Tensor& there) const {
  return there.is_cpu() ? there : arrived(to_host(there));
}

torch::Tensor InnerGroup::arrived(const OnTheWay& copy) const {
  transport_ == nullptr ? copy.came.synchronize() : transport_->await(copy.came);
  return copy.here;
}

std::vector<InnerCollective> InnerGroups::take_issued() { return std::exchange(record_, {}); }

}  // namespace polyphony::exec
