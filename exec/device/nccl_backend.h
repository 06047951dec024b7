// Wraps an NCCL communicator as a c10d backend. It implements the calls that DeviceGroup and
// DeviceTransport make (exec/device/device_group.h), and no others. For the builds that compile it,
// see exec/device/nccl.h.
//
// It replaces c10d's own ProcessGroupNCCL, which does not accept an existing communicator; whose
// splits wait for the other ranks with the parent locked, so that a split with a lost peer never
// ends; and whose watchdog threads end the process, without our error message, when NCCL reports a
// lost peer.
//
// Calls run on the current stream. Calls with asyncOp, and messages with `apart`, run on a stream
// of the group, and Work::wait() makes the current stream wait for it. The communicator is a
// blocking one: the host waits for peers only where pairs connect. Source: NCCL 2.28 user guide,
// "Group Calls", "Point-to-point communication", "Fault Tolerance"; src/init.cc.
#pragma once

#include <nccl.h>

#include <string>

#include "exec/device/device_group.h"

namespace polyphony::exec {

// Returns a backend that takes ownership of the communicator `made`, which belongs to `device`.
DeviceBackend nccl_backend(ncclComm_t made, int index, int size, torch::Device device);

// Throws std::runtime_error with NCCL's message if `result` is an error. `communicator`: the one
// whose last error text is appended; may be null.
void check_nccl(ncclResult_t result, const std::string& what, ncclComm_t communicator = nullptr);

}  // namespace polyphony::exec
