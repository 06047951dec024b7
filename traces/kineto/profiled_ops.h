// The ops of a Program in a profile of `polyphony run --kineto`: annotations of the host with an
// argument "op", the position in the Program of the rank (exec/runner/op_annotation.h). The key
// "polyphony" of the file states what was recorded:
//   {"format": 1, "kind": "profiled", "step": N, "ops": of the rank, "on_device": whether a device
//    ran the ops, "late_plan"?, "clock": {"offset_ns", "error_ns"}}
// The clock: `offset_ns` is to be added to the rank's times to get rank 0's.
//
// Throws InputError if the file is damaged, or lacks one of these.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/kineto/bytes.h"
#include "traces/kineto/device_trace.h"

namespace polyphony::traces {

struct ProfiledOp {
  std::int64_t op = 0;
  std::string name;
  Nanoseconds start{}, end{};  // Unix times, on the rank's clock
  bool operator==(const ProfiledOp&) const = default;
};
struct ProfiledOps {
  std::int64_t step = -1, ranks = -1, rank = -1;
  std::int64_t count = -1;  // of the rank's ops
  bool on_device = false, late_plan = false;
  Nanoseconds offset{}, error{};  // of the clock
  std::vector<ProfiledOp> ops;    // in the order of the file
};

// Whether the file is packed, or a profile of ours, in which case it is not a trace file
// (traces/format).
bool is_profile(std::string_view bytes);
// Returns the ops of a profile. `heads`: reads no ops, only what precedes them. `file` is used in
// messages.
ProfiledOps read_profiled_ops(std::string_view bytes, const std::string& file, bool heads = false);

}  // namespace polyphony::traces
