#include "exec/gloo_communicator.h"

#include <utility>

#include "exec/gloo_exchange.h"
#include "exec/tensor_bytes.h"
#include "shared/error.h"

namespace polyphony::exec {

GlooCommunicator::GlooCommunicator(std::shared_ptr<GlooContext> context, std::string name,
                                   std::vector<Rank> members, std::size_t index)
    : context_(std::move(context)),
      name_(std::move(name)),
      members_(std::move(members)),
      index_(index) {
  if (size() == 1) return;
  messages_ = std::make_unique<GlooExchange>(context_, name_, members_, index_);
  if (size() > context_->options.direct_ranks) return;
  links_ =
      connected(context_, [members = members_, name = name_, index](const GlooContext& shared) {
        return shared.make_links(name, members, index);
      });
}

PeerExchange& GlooCommunicator::way(std::size_t bytes) {
  if (links_ && Bytes(static_cast<std::int64_t>(bytes)) <= context_->options.direct_bytes)
    return *links_;
  return *messages_;
}

void GlooCommunicator::all_reduce(torch::Tensor& tensor, Reduction reduction) {
  std::byte* const data = bytes_of(tensor);
  const Element element = element_of(tensor);
  if (size() == 1 || tensor.nbytes() == 0) return;
  guarded(*context_, "all_reduce of group " + name_,
          [&] { way(tensor.nbytes()).all_reduce(element, reduction, data, tensor.nbytes()); });
}

void GlooCommunicator::all_gather(const torch::Tensor& mine, torch::Tensor& all,
                                  const std::vector<std::int64_t>& counts) {
  const Parts parts(all, counts, size());
  check_part(mine, all, parts, index_);
  const Element element = element_of(all);
  std::byte *const from = bytes_of(mine), *const to = bytes_of(all);
  if (parts.total() == 0) return;
  if (size() == 1) return copy_bytes(to, from, parts.total());
  guarded(*context_, "all_gather of group " + name_,
          [&] { way(parts.total()).all_gather(element, from, to, parts); });
}

void GlooCommunicator::reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                                      const std::vector<std::int64_t>& counts) {
  const Parts parts(all, counts, size());
  check_part(mine, all, parts, index_);
  const Element element = element_of(all);
  std::byte *const from = bytes_of(all), *const to = bytes_of(mine);
  if (parts.total() == 0) return;
  if (size() == 1) return copy_bytes(to, from, parts.total());
  guarded(*context_, "reduce_scatter of group " + name_,
          [&] { way(parts.total()).reduce_scatter(element, from, to, parts); });
}

void GlooCommunicator::all_to_all(const torch::Tensor& send, torch::Tensor& receive,
                                  const std::vector<std::int64_t>& send_counts,
                                  const std::vector<std::int64_t>& receive_counts) {
  const Parts out(send, send_counts, size()), in(receive, receive_counts, size());
  check_apart(send, receive);
  const Element element = element_of(send);
  std::byte *const from = bytes_of(send), *const to = bytes_of(receive);
  POLYPHONY_CHECK(out.bytes(index_) == in.bytes(index_),
                  "group " << name_ << ": member " << index_ << " sends itself "
                           << out.bytes(index_) << " and expects " << in.bytes(index_) << " bytes");
  if (size() == 1) return copy_bytes(to, from, in.total());
  // Nobody knows how much the others move, so size cannot choose the way.
  guarded(*context_, "all_to_all of group " + name_,
          [&] { way(links_ ? 0 : SIZE_MAX).all_to_all(element, from, out, to, in); });
}

}  // namespace polyphony::exec
