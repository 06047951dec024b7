// The counterpart of NCCL for queued devices (tests/exec/device_double/queued_device.h):
// collectives and messages of their tensors run on the current stream, which waits there for the
// other ranks. The host does not wait; await() reports a lost peer. Host tensors use the inner
// transport.
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
