// What NCCL is to GPUs, for queued devices (tests/exec/device_double/queued_device.h): collectives and messages of their
// tensors are work of the current stream, which meets the other ranks' there. The host is not held up; a lost peer is
// heard of by await(). Tensors of the host go straight to the transport beneath.
#pragma once

#include "exec/transport/forwarding.h"

namespace polyphony::exec::testing {

class QueuedTransport : public ForwardingTransport {
 public:
  explicit QueuedTransport(Transport& inner) : ForwardingTransport(inner) {}
  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override;
  void exchange(const std::vector<Transfer>& transfers) override;
  bool queues() const override { return true; }
};

}  // namespace polyphony::exec::testing
