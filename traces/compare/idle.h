// Divides the idle time of each rank's compute stream by cause.
//
// A gap is the time from one active interval of the compute stream to the next (find_activity() in
// traces/compare/activity.h), or to the end of the step. The cause of a gap is one op: of the ops
// that the next compute op waits for, the one that ended last. For the gap at the end of the step
// it is the rank's last op that is not compute. If that op is communication, the moments of the gap
// at which its stream transfers data are exposed communication, of one of these kinds:
//
//   messages   messages between pipeline stages of one grid
//   bridge     messages between grids
//   shards     all-gathers and reduce-scatters of sharded parameters
//   gradients  reductions of gradients
//   host       copies of activations to the host's memory and back
//
// The rest of the gap is waiting for other ranks:
//
//   imbalance  the part due to the rank having less compute time than the rank with the most
//   bubble     the remainder: filling and draining the pipeline, actions that arrive late
//
// All causes add up to Part::idle of part_times() (compare.h).
//
// Not modeled: communication inside ops (tensor-, context- and expert-parallel collectives are part
// of forward and backward); the effect of a late message on ranks further along the pipeline, which
// counts as bubble there.
#pragma once

#include <array>
#include <vector>

#include "shared/enum_names.h"
#include "shared/program/program.h"
#include "shared/program/timeline.h"

namespace polyphony::traces {

using polyphony::name;  // of the enums below

enum class Idle : std::uint8_t { messages, bridge, shards, gradients, host, imbalance, bubble };
constexpr auto names(Idle) {
  return names_of<Idle>("messages between stages", "messages between grids", "sharded parameters",
                        "sums of gradients", "copies to and from host", "imbalance of ranks",
                        "bubble");
}
inline constexpr std::size_t kIdles = 7;

using IdleTimes = std::array<Seconds, kIdles>;  // by Idle

// Returns the idle time of each rank by cause.
std::vector<IdleTimes> idle_times(const Program& program, const Timeline& timeline);
IdleTimes mean(const std::vector<IdleTimes>& ranks);

}  // namespace polyphony::traces
