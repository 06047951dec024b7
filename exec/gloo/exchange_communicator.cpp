#include "exec/gloo/exchange_communicator.h"

#include <utility>

#include "exec/transport/call_annotation.h"
#include "exec/transport/tensor_bytes.h"
#include "shared/error.h"

namespace polyphony::exec {

std::byte* ExchangeCommunicator::memory(const torch::Tensor& tensor) const {
  POLYPHONY_CHECK(tensor.defined() && tensor.is_contiguous() && tensor.is_cpu(),
                  "group " << name_ << " needs contiguous tensors in host memory");
  return static_cast<std::byte*>(tensor.data_ptr());
}

PeerExchange& ExchangeCommunicator::way(std::size_t bytes) {
  if (ways_.links && Bytes(static_cast<std::int64_t>(bytes)) <= context_->options.direct_bytes)
    return *ways_.links;
  return *ways_.messages;
}

void ExchangeCommunicator::copy_alone(const torch::Tensor& from, torch::Tensor& to) const {
  if (memory(from) != memory(to)) to.view({-1}).copy_(from.view({-1}));
}

void ExchangeCommunicator::all_reduce(torch::Tensor& tensor, Reduction reduction) {
  std::byte* const data = memory(tensor);
  const Element element = element_of(tensor);
  if (size_ == 1 || tensor.nbytes() == 0) return;
  const CallAnnotation call("gloo", "allreduce", name_, size(), tensor, tensor);
  guarded(*context_, "all_reduce of group " + name_,
          [&] { way(tensor.nbytes()).all_reduce(element, reduction, data, tensor.nbytes()); });
}

void ExchangeCommunicator::all_gather(const torch::Tensor& mine, torch::Tensor& all,
                                      const std::vector<std::int64_t>& counts) {
  const Parts parts(all, counts, size());
  check_part(mine, all, parts, index_);
  const Element element = element_of(all);
  std::byte *const from = memory(mine), *const to = memory(all);
  if (parts.total() == 0) return;
  if (size_ == 1) return copy_alone(mine, all);
  const CallAnnotation call("gloo", "allgather", name_, size(), mine, all);
  guarded(*context_, "all_gather of group " + name_,
          [&] { way(parts.total()).all_gather(element, from, to, parts); });
}

void ExchangeCommunicator::reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                                          const std::vector<std::int64_t>& counts) {
  const Parts parts(all, counts, size());
  check_part(mine, all, parts, index_);
  const Element element = element_of(all);
  std::byte *const from = memory(all), *const to = memory(mine);
  if (parts.total() == 0) return;
  if (size_ == 1) return copy_alone(all, mine);
  const CallAnnotation call("gloo", "reduce_scatter", name_, size(), all, mine);
  guarded(*context_, "reduce_scatter of group " + name_,
          [&] { way(parts.total()).reduce_scatter(element, from, to, parts); });
}

void ExchangeCommunicator::all_to_all(const torch::Tensor& send, torch::Tensor& receive,
                                      const std::vector<std::int64_t>& send_counts,
                                      const std::vector<std::int64_t>& receive_counts) {
  const Parts out(send, send_counts, size()), in(receive, receive_counts, size());
  check_apart(send, receive);
  const Element element = element_of(send);
  std::byte *const from = memory(send), *const to = memory(receive);
  POLYPHONY_CHECK(out.bytes(index_) == in.bytes(index_),
                  "group " << name_ << ": member " << index_ << " sends itself "
                           << out.bytes(index_) << " and expects " << in.bytes(index_) << " bytes");
  if (size_ == 1) return copy_alone(send, receive);
  const CallAnnotation call("gloo", "all_to_all", name_, size(), send, receive);
  // A member does not know how many bytes the others exchange, so the choice must not depend on
  // them.
  guarded(*context_, "all_to_all of group " + name_,
          [&] { way(ways_.links ? 0 : SIZE_MAX).all_to_all(element, from, out, to, in); });
}

}  // namespace polyphony::exec
