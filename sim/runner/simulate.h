// Plays a Program on SimGrid: the predictor that knows contention. Every op starts when the
// blocking rules of shared/program/program.h let it, lasts what the CostTable says, and flows that
// cross the same link at the same time share its rate (max-min fair).
//   Compute and delays are fixed times. A node with flows: its delay, then all flows together,
//   ended by the last. Rates in bytes a second, times in seconds from the start of the step; bytes
//   are integers.
// Every call runs in its own forked child (sim/runner/child.h): results do not depend on what was
// simulated before, and equal input gives equal bytes out.
//
// Does not model: ranks that share a CPU core, jitter, packets. One step from a cold start, not the
// steady period of chained steps.
//
// Source: SimGrid 4.1, model "raw" (flow-level, time = size / bandwidth, max-min sharing).
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "shared/cost/cost.h"
#include "shared/error.h"
#include "shared/graph/compile.h"
#include "shared/program/timeline.h"

namespace polyphony::sim {

// Bytes that left one rank over each of its links.
struct Sent {
  Bytes node{};
  Bytes fabric{};
  bool operator==(const Sent&) const = default;
};

// What a simulation saw.
struct Playback {
  Timeline timeline;
  std::vector<Sent> sent;   // by rank, counted as transfers end
  std::uint64_t flows = 0;  // transfers that crossed links
  Seconds wall{};  // time the child took to build the platform and run; not part of the prediction
};

// Infeasible: a flow needs a link that the cluster does not have (rate zero). Throws InternalError
// when SimGrid fails.
std::variant<Playback, Infeasible> play(const Program& program, const Compiled& compiled,
                                        const CostTable& costs);
std::variant<Timeline, Infeasible> simulate(const Program& program, const Compiled& compiled,
                                            const CostTable& costs);

}  // namespace polyphony::sim
