// Runs ranks as threads, each with a queued device of its own, whose tensors are exchanged by
// groups of these devices. It tests the transport for ranks with a GPU each
// (exec/device/device_transport.h).
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "exec/device/device_transport.h"
#include "shared/units.h"
#include "tests/exec/device_double/queued_backend.h"

namespace polyphony::exec::testing {

// What ranks of one world share.
class DeviceWorld {
 public:
  DeviceWorld();

  // Over `inner`, of one rank. `patience`: how long a kernel waits for its peers.
  std::unique_ptr<Transport> transport(Transport& inner, torch::Device device, bool in_order,
                                       Seconds patience = Seconds(60));
  // Of all ranks: what waits for others on any device ends.
  void abort();
  // Its families are called so and then as DeviceTransport calls them.
  const std::string& name() const { return name_; }

 private:
  std::string name_;  // of its groups, so that those of several worlds do not meet
  std::mutex mutex_;
  std::vector<FamilyPointer> families_;  // of all ranks
  bool aborted_ = false;
};

// Each rank's body on its own thread; throws what the first of them threw.
void on_devices(int ranks, bool in_order,
                const std::function<void(Transport&, torch::Device)>& body);

}  // namespace polyphony::exec::testing
