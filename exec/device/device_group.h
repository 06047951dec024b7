// A group's collectives for device tensors, on a c10d backend that queues them (NCCL's; in tests,
// its double). They are ordered on the caller's current stream, as exec/transport/communicator.h
// specifies for transports that do not block.
//
// A call runs on the caller's stream itself (asyncOp false). Calls that are overlapped with other
// work run on a stream of the group, for which the caller's stream then waits.
//
// Sums are the backend's: in an order of its choice and in the tensors' format (bfloat16 is rounded
// at every step; gradients are fp32). With `in_order` every member receives all members' parts and
// adds them in group order in fp32 or wider, as on CPUs: the result always has the same bits, at
// the cost of twice the memory of a chunk and more bytes on the wire.
// Source: torch/csrc/distributed/c10d/Backend.hpp (LibTorch 2.11).
#pragma once

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "exec/transport/communicator.h"

namespace polyphony::exec {

// A c10d backend that also reports errors inside the group.
class GroupBackend : public c10d::Backend {
 public:
  using c10d::Backend::Backend;
  // Returns the library's message for an error that arose in the group outside a call of ours;
  // empty if there is none, or if the group was aborted. Does not block. May be called from any
  // thread, also while another thread is in a call.
  virtual std::string own_error() = 0;
  // Collects the sends, receives or reductions that follow, which endCoalescing() queues as one
  // call: on a stream of the group if `apart`, else on the current stream.
  virtual void begin_messages(bool apart) = 0;
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
