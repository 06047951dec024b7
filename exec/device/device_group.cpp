#include "exec/device/device_group.h"

#include <algorithm>
#include <numeric>

#include "exec/transport/call_annotation.h"
#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;
using Counts = std::vector<std::int64_t>;

namespace {

// Elements that are summed in group order at a time; not tuned by measurements.
constexpr std::int64_t kPiece = 64 << 20;

Tensor flat(const Tensor& tensor, const std::string& name) {
  POLYPHONY_CHECK(tensor.defined() && tensor.is_contiguous() && !tensor.is_cpu(),
                  "group " << name << " needs contiguous tensors on a device");
  return tensor.view({-1});
}

using Beside = std::function<void()>;

// A call without `beside` runs on the current stream; else it runs on a stream of the group.
template <class Options>
Options options_for(const Beside& beside) {
  Options options;
  options.asyncOp = static_cast<bool>(beside);
  return options;
}

// Queues `beside`, and then makes the caller's current stream, not the host, wait for the call.
void order(const c10::intrusive_ptr<c10d::Work>& work, const Beside& beside = {}) {
  if (beside) beside();
  if (work) work->wait();
}

bool equal(const Counts& counts) {
  return std::all_of(counts.begin(), counts.end(), [&](std::int64_t n) { return n == counts[0]; });
}

std::int64_t begin_of(const Counts& counts, int member) {
  return std::accumulate(counts.begin(), counts.begin() + member, std::int64_t{0});
}

// Returns the sum of rows [members, n] in their order; bfloat16 is accumulated in fp32.
Tensor summed(const Tensor& rows) {
  const torch::Dtype narrow = rows.scalar_type();
  Tensor total = rows[0].to(narrow == torch::kBFloat16 ? torch::kFloat32 : narrow, false, true);
  for (std::int64_t row = 1; row < rows.size(0); ++row) total.add_(rows[row]);
  return total.to(narrow);
}

}  // namespace

void DeviceGroup::all_reduce(Tensor& tensor, Reduction reduction) {
  all_reduce_beside(tensor, reduction, {});
}

void DeviceGroup::all_reduce_beside(Tensor& tensor, Reduction reduction, const Beside& beside) {
  const Tensor whole = flat(tensor, name_);
  if (size() == 1 || whole.numel() == 0) return order({}, beside);
  const CallAnnotation call(backend_->getBackendName(), "allreduce", name_, size(), whole, whole);
  const torch::NoGradGuard no_grad;
  if (in_order_ && reduction == Reduction::sum) {
    for (std::int64_t first = 0; first < whole.numel(); first += kPiece)
      add_in_order(whole.narrow(0, first, std::min(kPiece, whole.numel() - first)));
    return order({}, beside);
  }
  auto options = options_for<c10d::AllreduceOptions>(beside);
  options.reduceOp = reduction == Reduction::sum ? c10d::ReduceOp::SUM : c10d::ReduceOp::MAX;
  std::vector<Tensor> tensors{whole};
  order(backend_->allreduce(tensors, options), beside);
}

// Sums in group order: every member sums an equal share; the chunk is padded if it is not
// divisible.
void DeviceGroup::add_in_order(Tensor piece) {
  const std::int64_t share = (piece.numel() + size() - 1) / size(), padded = share * size();
  Tensor send = piece;
  if (padded != piece.numel()) send = at::constant_pad_nd(piece, {0, padded - piece.numel()});
  Tensor parts = torch::empty({padded}, piece.options());
  Counts each(static_cast<std::size_t>(size()), share);
  order(backend_->alltoall_base(parts, send, each, each, options_for<c10d::AllToAllOptions>({})));
  Tensor mine = summed(parts.view({size(), share}));
  order(backend_->_allgather_base(parts, mine, options_for<c10d::AllgatherOptions>({})));
  piece.copy_(parts.narrow(0, 0, piece.numel()));
}

void DeviceGroup::all_gather(const Tensor& mine, Tensor& all, const Counts& counts) {
  all_gather_beside(mine, all, counts, {});
}

void DeviceGroup::all_gather_beside(const Tensor& mine, Tensor& all, const Counts& counts,
                                    const Beside& beside) {
  Tensor from = flat(mine, name_), to = flat(all, name_);
  if (to.numel() == 0) return order({}, beside);
  const CallAnnotation call(backend_->getBackendName(), "allgather", name_, size(), from, to);
  const torch::NoGradGuard no_grad;
  const auto part = [&](int member) {
    return to.narrow(0, begin_of(counts, member), counts[static_cast<std::size_t>(member)]);
  };
  if (size() > 1 && equal(counts))
    return order(backend_->_allgather_base(to, from, options_for<c10d::AllgatherOptions>(beside)),
                 beside);
  Tensor own = part(index());
  if (own.numel() > 0 && own.const_data_ptr() != from.const_data_ptr()) own.copy_(from);
  if (size() == 1) return order({}, beside);
  backend_->begin_messages(static_cast<bool>(beside));
  for (int step = 1; step < size(); ++step) {
    const int target = (index() + step) % size(), source = (index() + size() - step) % size();
    std::vector<Tensor> out{from}, in{part(source)};
    if (out[0].numel() > 0) backend_->send(out, target, 0);
    if (in[0].numel() > 0) backend_->recv(in, source, 0);
  }
  order(backend_->endCoalescing(), beside);
}

void DeviceGroup::reduce_scatter(const Tensor& all, Tensor& mine, const Counts& counts) {
  reduce_scatter_beside(all, mine, counts, {});
}

void DeviceGroup::reduce_scatter_beside(const Tensor& all, Tensor& mine, const Counts& counts,
                                        const Beside& beside) {
  Tensor from = flat(all, name_), to = flat(mine, name_);
  if (from.numel() == 0) return order({}, beside);
  const CallAnnotation call(backend_->getBackendName(), "reduce_scatter", name_, size(), from, to);
  const torch::NoGradGuard no_grad;
  const std::int64_t own = begin_of(counts, index());
  if (size() == 1 || in_order_) {
    Tensor parts = from;
    if (size() > 1) {
      parts = torch::empty({to.numel() * size()}, to.options());
      Counts received(counts.size(), to.numel()), sent = counts;
      order(backend_->alltoall_base(parts, from, received, sent,
                                    options_for<c10d::AllToAllOptions>(beside)),
            beside);
    } else {
      order({}, beside);
    }
    const Tensor sum = summed(parts.view({size(), to.numel()}));
    if (to.numel() > 0) to.copy_(sum);
    return;
  }
  if (equal(counts))
    return order(
        backend_->_reduce_scatter_base(to, from, options_for<c10d::ReduceScatterOptions>(beside)),
        beside);
  // One reduction per member in one NCCL group: NCCL's reduce-scatter supports equal parts only.
  if (to.numel() > 0 && to.const_data_ptr() != from.narrow(0, own, to.numel()).const_data_ptr())
    to.copy_(from.narrow(0, own, to.numel()));
  backend_->begin_messages(static_cast<bool>(beside));
  for (int member = 0; member < size(); ++member) {
    const std::int64_t count = counts[static_cast<std::size_t>(member)];
    if (count == 0) continue;
    std::vector<Tensor> part{member == index() ? to
                                               : from.narrow(0, begin_of(counts, member), count)};
    auto options = options_for<c10d::ReduceOptions>(beside);
    options.rootRank = member;
    backend_->reduce(part, options);
  }
  order(backend_->endCoalescing(), beside);
}

void DeviceGroup::all_to_all(const Tensor& send, Tensor& receive, const Counts& send_counts,
                             const Counts& receive_counts) {
  all_to_all_beside(send, receive, send_counts, receive_counts, {});
}

void DeviceGroup::all_to_all_beside(const Tensor& send, Tensor& receive, const Counts& send_counts,
                                    const Counts& receive_counts, const Beside& beside) {
  Tensor from = flat(send, name_), to = flat(receive, name_);
  const torch::NoGradGuard no_grad;
  if (size() == 1) {
    if (to.numel() > 0) to.copy_(from);
    return order({}, beside);
  }
  const CallAnnotation call(backend_->getBackendName(), "all_to_all", name_, size(), from, to);
  Counts received = receive_counts, sent = send_counts;
  order(
      backend_->alltoall_base(to, from, received, sent, options_for<c10d::AllToAllOptions>(beside)),
      beside);
}

}  // namespace polyphony::exec
