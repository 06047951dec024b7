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

// State shared by the ranks of one world.
class DeviceWorld {
 public:
  DeviceWorld();

  // Wraps `inner`, the transport of one rank. `patience`: how long a kernel waits for its peers.
  std::unique_ptr<Transport> transport(Transport& inner, torch::Device device, bool in_order,
                                       Seconds patience = Seconds(60));
  // For all ranks: ends everything that waits for other ranks on any device.
  void abort();
  // Prefix of the names of its families, followed by the name that DeviceTransport gives.
  const std::string& name() const { return name_; }

 private:
  std::string name_;  // of its groups, so that groups of several worlds have different names
  std::mutex mutex_;
  std::vector<FamilyPointer> families_;  // of all ranks
  bool aborted_ = false;
};

// Makes a call of each kind in a group, so that later calls need not connect its members. Collective.
void connect_members(Communicator& group, torch::Device device);

// Runs the body of each rank on its own thread; rethrows the first exception.
void on_devices(int ranks, bool in_order,
                const std::function<void(Transport&, torch::Device)>& body);

}  // namespace polyphony::exec::testing
