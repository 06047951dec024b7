// A double of NCCL's groups for queued devices: what DeviceGroup and DeviceTransport (exec/network/) call of c10d's
// backends, as ProcessGroupNCCL does it.
//   Calls with asyncOp and messages are work of a stream of the group's, behind the caller's current one; Work::wait()
//   makes the current stream wait for it, and nothing else does. Other calls are the current stream's own. Calls meet by their order in the group, messages by their order between two members;
//   tags are ignored. Calls that differ, sizes that differ, and a member that does not come are errors that name them.
//   Sums are in some other order than the group's, by their size.
//   Families meet and are split as DeviceFamily says, by name, in this process: a split that members begin in another
//   order, with another colour or another group, is an error that says who. A pair's first message, of an all-to-all too,
//   holds the host up until the other end has come; nothing else does, as of NCCL's that is told to connect rings when
//   it makes a group.
//   abort() ends this member's calls and kernels, and leaves its peers waiting.
//   A kernel keeps a slot of its device while it waits for its peers.
#pragma once

#include <memory>

#include "exec/device/device_family.h"
#include "shared/units.h"

namespace polyphony::exec::testing {

FamilyPointer queued_family(const std::string& name, int index, int size, torch::Device device,
                            Seconds patience = Seconds(60));
// DeviceMaking's.
void queued_together(const std::function<void()>& calls);

// Of this thread: the longest chain of waits of hosts for each other, families' and first messages', that it has come to
// the end of. A thread that begins has none.
int chain_of_host_waits();
// Each such wait takes so much longer; 0 from the start.
void delay_host_waits(Seconds time);
// Splits of a family, until it is gone.
int splits_of(const std::string& family);

// How many kernels of groups a device runs at a time, of all devices; 0: any number. Kernels that then wait for each
// other for ever fail with an error that begins with "deadlock" and names them.
void limit_slots(int slots);

// The next kernel on the device, of groups with this in their names, waits until its group is aborted, and the group
// reports these words (GroupBackend::own_error()).
void break_group(torch::Device device, const std::string& group, const std::string& words);

}  // namespace polyphony::exec::testing
