// A double of NCCL's groups for queued devices: it implements the calls that DeviceGroup and
// DeviceTransport (exec/device/) make on c10d backends, with the semantics of ProcessGroupNCCL.
//
// Calls with asyncOp, and messages, run on a stream of the group, after the caller's current
// stream; only Work::wait() makes the current stream wait for them. Other calls run on the current
// stream. Calls are matched by their order in the group, messages by their order between two
// members; tags are ignored. Differing calls or sizes, and members that do not arrive, are errors
// that name them. Sums are taken in another order than the group's, which depends on their size.
//
// Families connect and are split as DeviceFamily specifies, by name, within this process. If
// members begin a split in another order, or with another color or group, the error names them. A
// pair's first message, also one of an all-to-all, blocks the host until the other end has arrived;
// nothing else does, as in NCCL when it connects rings while it makes a group.
//
// abort() ends this member's calls and kernels, and leaves its peers waiting. A kernel keeps a slot
// of its device while it waits for its peers.
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
