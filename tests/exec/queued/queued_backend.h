// A double of NCCL's groups for queued devices: what DeviceGroup and DeviceTransport (exec/network/) call of c10d's
// backends, as ProcessGroupNCCL does it.
//   A group has a stream of its own, behind the caller's current one; Work::wait() makes the current stream wait for it,
//   and nothing else does. Calls meet by their order in the group, messages by their order between two members;
//   tags are ignored. Calls that differ, sizes that differ, and a member that does not come are errors that name them.
//   Sums are in some other order than the group's, by their size.
// Not like NCCL: any number of groups runs at a time.
#pragma once

#include <memory>

#include "exec/network/device_group.h"
#include "shared/units.h"

namespace polyphony::exec::testing {

// Of all members of a group; by its name, in this process.
DeviceBackend queued_backend(const std::string& name, int index, int size, torch::Device device,
                             Seconds patience = Seconds(60));

}  // namespace polyphony::exec::testing
