// A double of NCCL's groups for queued devices: what DeviceGroup and DeviceTransport (exec/network/) call of c10d's
// backends, as ProcessGroupNCCL does it.
//   Calls with asyncOp and messages are work of a stream of the group's, behind the caller's current one; Work::wait()
//   makes the current stream wait for it, and nothing else does. Other calls are the current stream's own. Calls meet by their order in the group, messages by their order between two members;
//   tags are ignored. Calls that differ, sizes that differ, and a member that does not come are errors that name them.
//   Sums are in some other order than the group's, by their size.
//   Making a group, and a pair's or a group's first call, hold the host up until all members are there; no other does.
//   abort() ends this member's calls and kernels, and leaves its peers waiting.
//   A kernel keeps a slot of its device while it waits for its peers.
#pragma once

#include <memory>

#include "exec/network/device_group.h"
#include "shared/units.h"

namespace polyphony::exec::testing {

// Of all members of a group; by its name, in this process.
DeviceBackend queued_backend(const std::string& name, int index, int size, torch::Device device,
                             Seconds patience = Seconds(60));

// How many kernels of groups a device runs at a time, of all devices; 0: any number. Kernels that then wait for each
// other for ever fail with an error that begins with "deadlock" and names them.
void limit_slots(int slots);

}  // namespace polyphony::exec::testing
