// Exchanges device tensors over a transport that moves host memory only: each tensor is copied to
// the host, exchanged, and copied back. It serves ranks that share a GPU, which NCCL does not
// support. CPU tensors are passed through unchanged.
//   The copies use pageable memory, and block the host until the device is done.
#pragma once

#include <memory>
#include <string>

#include "exec/transport/forwarding.h"

namespace polyphony::exec {

class StagedCommunicator : public Communicator {
 public:
  explicit StagedCommunicator(std::unique_ptr<Communicator> host) : host_(std::move(host)) {}

  int index() const override { return host_->index(); }
  int size() const override { return host_->size(); }

  void all_reduce(torch::Tensor& tensor, Reduction reduction) override;
  void all_gather(const torch::Tensor& mine, torch::Tensor& all,
                  const std::vector<std::int64_t>& counts) override;
  void reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                      const std::vector<std::int64_t>& counts) override;
  void all_to_all(const torch::Tensor& send, torch::Tensor& receive,
                  const std::vector<std::int64_t>& send_counts,
                  const std::vector<std::int64_t>& receive_counts) override;

 private:
  std::unique_ptr<Communicator> host_;
};

class StagedTransport : public ForwardingTransport {
 public:
  explicit StagedTransport(std::unique_ptr<Transport> host)
      : ForwardingTransport(std::move(host)) {}

  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override {
    return std::make_unique<StagedCommunicator>(inner().make_group(name, members));
  }
  void exchange(const std::vector<Transfer>& transfers) override;
};

}  // namespace polyphony::exec
