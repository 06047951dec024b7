// What the idle time of each rank's compute stream was spent on.
//   A gap lies between two pieces of compute (find_activity, activity.h). What ended it is the wait of
//   the op behind it that ended last; behind the rank's last op, the rank's last message or
//   collective. Of the gap is exposed communication:
//     messages   messages between pipeline stages of one grid under way, on the stream of what ended it
//     bridge     likewise between grids
//     shards     likewise gathers and reduce-scatters of sharded parameters
//     gradients  likewise sums of gradients
//     host       likewise copies of activations to the host's memory and back
//   The rest is waiting for other ranks:
//     imbalance  as much of it as the rank has less to compute than the one that computes most
//     bubble     what is left: filling and draining the pipeline, actions that come late
// They add up to Part::idle of part_times() (compare.h). Left out: communication inside ops (tensor-,
// context- and expert-parallel collectives are part of forward and backward); what a late message cost
// the ranks further along, which is bubble there.
#pragma once

#include <array>
#include <vector>

#include "shared/program/program.h"
#include "shared/program/timeline.h"

namespace polyphony::traces {

enum class Idle : std::uint8_t { messages, bridge, shards, gradients, host, imbalance, bubble };
inline constexpr std::size_t kIdles = 7;
const char* name(Idle idle);

using IdleTimes = std::array<Seconds, kIdles>;  // by Idle

// By rank.
std::vector<IdleTimes> idle_times(const Program& program, const Timeline& timeline);
IdleTimes mean(const std::vector<IdleTimes>& ranks);

}  // namespace polyphony::traces
