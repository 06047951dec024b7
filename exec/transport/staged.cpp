#include "exec/transport/staged.h"

namespace polyphony::exec {

namespace {

torch::Tensor host_like(const torch::Tensor& tensor) {
  return torch::empty(tensor.sizes(), tensor.options().device(torch::kCPU));
}

}  // namespace

void StagedCommunicator::all_reduce(torch::Tensor& tensor, Reduction reduction) {
  if (tensor.is_cpu()) return host_->all_reduce(tensor, reduction);
  if (size() == 1) return;
  torch::Tensor staged = tensor.cpu();
  host_->all_reduce(staged, reduction);
  tensor.copy_(staged);
}

void StagedCommunicator::all_gather(const torch::Tensor& mine, torch::Tensor& all,
                                    const std::vector<std::int64_t>& counts) {
  if (all.is_cpu()) return host_->all_gather(mine, all, counts);
  torch::Tensor staged = host_like(all);
  host_->all_gather(mine.cpu(), staged, counts);
  all.copy_(staged);
}

void StagedCommunicator::reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                                        const std::vector<std::int64_t>& counts) {
  if (all.is_cpu()) return host_->reduce_scatter(all, mine, counts);
  torch::Tensor staged = host_like(mine);
  host_->reduce_scatter(all.cpu(), staged, counts);
  mine.copy_(staged);
}

void StagedCommunicator::all_to_all(const torch::Tensor& send, torch::Tensor& receive,
                                    const std::vector<std::int64_t>& send_counts,
                                    const std::vector<std::int64_t>& receive_counts) {
  if (send.is_cpu()) return host_->all_to_all(send, receive, send_counts, receive_counts);
  torch::Tensor staged = host_like(receive);
  host_->all_to_all(send.cpu(), staged, send_counts, receive_counts);
  receive.copy_(staged);
}

void StagedTransport::exchange(const std::vector<Transfer>& transfers) {
  std::vector<Transfer> staged = transfers;
  for (Transfer& transfer : staged) {
    if (transfer.tensor.is_cpu()) continue;
    transfer.tensor = transfer.sends ? transfer.tensor.cpu() : host_like(transfer.tensor);
  }
  inner().exchange(staged);
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const bool came = !transfers[i].sends && !transfers[i].tensor.is_cpu();
    if (came) transfers[i].tensor.copy_(staged[i].tensor);
  }
}

}  // namespace polyphony::exec
