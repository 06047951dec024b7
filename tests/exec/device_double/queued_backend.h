// A double of NCCL's groups for queued devices: it implements the calls that DeviceGroup and
// DeviceTransport (exec/device/) make on c10d backends, with the semantics of ProcessGroupNCCL.
//
// Calls with asyncOp, and messages with `apart`, run on a stream of the group, after the caller's
// current stream; only Work::wait() makes the current stream wait for them. Other calls run on the
// current stream. Calls are matched by their order in the group, messages by their order between two
// members; tags are ignored. Differing calls or sizes, and members that do not arrive, are errors
// that name them. Sums are taken in another order than the group's, which depends on their size.
//
// Families connect and are split as DeviceFamily specifies, by name, within this process. If
// members begin a split in another order, or with another color or group, the error names them. A
// pair's first message, also one of an all-to-all, blocks the host until the other end has arrived;
// the first collective of each kind, until all members have. Nothing else does.
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
// Implements DeviceMaking.
void queued_together(const std::function<void()>& calls);

// Returns, for this thread, the longest completed chain of waits of hosts for each other (at
// families and first messages). A new thread has none.
int chain_of_host_waits();
// Makes each such wait longer by this time (default 0).
void delay_host_waits(Seconds time);
// Counts the splits of a family while it exists.
int splits_of(const std::string& family);

// Limits the number of group kernels that each device runs at the same time; 0: no limit. Kernels
// that then wait for each other for ever fail with an error that begins with "deadlock" and names
// them.
void limit_slots(int slots);

// Makes the next group kernel on the device, in a group whose name contains this text, wait until
// its group is aborted; the group then reports this error (GroupBackend::own_error()), if it is not
// empty.
void break_group(torch::Device device, const std::string& group, const std::string& words);

}  // namespace polyphony::exec::testing
