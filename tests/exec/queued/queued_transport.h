// What NCCL is to GPUs, for queued devices (tests/exec/queued/queued_device.h): collectives and messages of their
// tensors are work of the current stream, which meets the other ranks' there. The host is not held up; a lost peer is
// heard of by await(). Tensors of the host go straight to the transport beneath.
#pragma once

#include "exec/transport/communicator.h"

namespace polyphony::exec::testing {

class QueuedTransport : public Transport {
 public:
  explicit QueuedTransport(Transport& inner) : inner_(inner) {}
  Rank rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  std::unique_ptr<Communicator> make_group(const std::string& name,
                                           const std::vector<Rank>& members) override;
  void exchange(const std::vector<Transfer>& transfers) override;
  bool queues() const override { return true; }
  void barrier() override { inner_.barrier(); }
  void post(const std::string& key, const std::string& bytes) override { inner_.post(key, bytes); }
  std::string fetch(const std::string& key) override { return inner_.fetch(key); }
  void abort(const std::string& reason) override { inner_.abort(reason); }

 private:
  Transport& inner_;
};

}  // namespace polyphony::exec::testing
