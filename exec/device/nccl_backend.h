// A communicator of NCCL's as a backend of c10d: the calls that DeviceGroup and DeviceTransport make
// (exec/device/device_group.h), and no others. Compiled as exec/device/nccl.h says.
//   Not c10d's own ProcessGroupNCCL. It takes no communicator that somebody else has made; its splits wait inside it
//   for the others, with the parent locked, so that a lost peer cannot be given up; and its watchdog threads end the
//   process, without a word of ours, when NCCL reports that a peer is gone.
//   Calls are the current stream's own; those with asyncOp, and messages, are of a stream of the group's, for which
//   Work::wait() makes the current one wait. The communicator is a blocking one: the host waits for peers where pairs
//   connect, and nowhere else.
// Source: NCCL 2.28 user guide, "Group Calls", "Point-to-point communication", "Fault Tolerance"; src/init.cc.
#pragma once

#include <nccl.h>

#include <string>

#include "exec/device/device_group.h"

namespace polyphony::exec {

// Takes the communicator, which is that of `device`.
DeviceBackend nccl_backend(ncclComm_t made, int index, int size, torch::Device device);

// std::runtime_error with NCCL's words; `communicator`: whose last error it may be, or null.
void check_nccl(ncclResult_t result, const std::string& what, ncclComm_t communicator = nullptr);

}  // namespace polyphony::exec
