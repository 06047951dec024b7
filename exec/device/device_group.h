// A group's collectives for tensors of devices, by a backend of c10d that queues them (NCCL's; in tests its double):
// ordered on the caller's current stream, as exec/transport/communicator.h says of transports that do not block.
//   A call is work of the caller's stream itself (asyncOp false), but for one that something is beside and for uneven
//   gathers, which are messages: those are of a stream of the group's, which the caller's waits for.
//   Sums are the backend's own: in an order of its choice, in the tensors' format (bfloat16 is rounded at every
//   step; gradients are fp32). `in_order`: everyone gets everyone's part and adds in group order, as on CPUs, wide:
//   the same bits at all times, for twice the memory of a piece and more bytes on the wire.
// Source: torch/csrc/distributed/c10d/Backend.hpp (LibTorch 2.11).
#pragma once

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "exec/transport/communicator.h"

namespace polyphony::exec {

// A group's backend, which can be asked how it fares.
class GroupBackend : public c10d::Backend {
 public:
  using c10d::Backend::Backend;
  // What has gone wrong in the group by itself, not in a call of ours, in the library's words; empty: nothing, or it
  // was aborted. Waits for nothing; of any thread, while another is in a call.
  virtual std::string own_error() = 0;
};
using DeviceBackend = c10::intrusive_ptr<GroupBackend>;

class DeviceGroup : public Communicator {
 public:
  DeviceGroup(std::string name, DeviceBackend backend, bool in_order)
      : name_(std::move(name)), backend_(std::move(backend)), in_order_(in_order) {}

  int index() const override { return backend_->getRank(); }
  int size() const override { return backend_->getSize(); }
  void all_reduce(torch::Tensor& tensor, Reduction reduction) override;
  void all_gather(const torch::Tensor& mine, torch::Tensor& all,
                  const std::vector<std::int64_t>& counts) override;
  void reduce_scatter(const torch::Tensor& all, torch::Tensor& mine,
                      const std::vector<std::int64_t>& counts) override;
  void all_reduce_beside(torch::Tensor& tensor, Reduction reduction,
                         const std::function<void()>& beside) override;
  void all_gather_beside(const torch::Tensor& mine, torch::Tensor& all,
                         const std::vector<std::int64_t>& counts,
                         const std::function<void()>& beside) override;
  void reduce_scatter_beside(const torch::Tensor& all, torch::Tensor& mine,
                             const std::vector<std::int64_t>& counts,
                             const std::function<void()>& beside) override;
  void all_to_all(const torch::Tensor& send, torch::Tensor& receive,
                  const std::vector<std::int64_t>& send_counts,
                  const std::vector<std::int64_t>& receive_counts) override;
  void all_to_all_beside(const torch::Tensor& send, torch::Tensor& receive,
                         const std::vector<std::int64_t>& send_counts,
                         const std::vector<std::int64_t>& receive_counts,
                         const std::function<void()>& beside) override;

 private:
  void add_in_order(torch::Tensor piece);

  std::string name_;
  DeviceBackend backend_;
  bool in_order_;
};

}  // namespace polyphony::exec
