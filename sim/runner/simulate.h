// Simulates a Program on SimGrid, with contention for links. Every op starts as soon as the
// blocking rules of shared/program/program.h allow and takes the time in the CostTable; flows that
// cross the same link at the same time share its rate (max-min fairness).
//
// Compute ops and delays take fixed times. A node with flows waits for its delay, then starts all
// its flows at once, and ends with the last. Rates are in bytes per second, times in seconds from
// the start of the step, and bytes are integers.
//
// Every call runs the helper program polyphony-simulate (sim/runner/helper.h). Results do not
// depend on earlier simulations, and equal input gives equal output, byte by byte. May be called
// from several threads at a time.
//
// Does not model: ranks that share a CPU core, jitter, packets. Simulates one step from a cold
// start, not the steady period of consecutive steps.
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

// Bytes that one rank sent, by kind of link.
struct Sent {
  Bytes node{};
  Bytes fabric{};
  bool operator==(const Sent&) const = default;
};

// The result of a simulation.
struct Playback {
  Timeline timeline;
  std::vector<Sent> sent;   // by rank; a transfer is counted when it ends
  std::uint64_t flows = 0;  // number of transfers that crossed links
  Seconds wall{};           // wall time of the child for setup and run; not part of the prediction
};

// Returns the simulated step, or Infeasible if a flow needs a link that the cluster does not have
// (its rate is zero). Throws InternalError if SimGrid fails.
std::variant<Playback, Infeasible> play(const Program& program, const Compiled& compiled,
                                        const CostTable& costs);
// The same, but returns only the Timeline.
std::variant<Timeline, Infeasible> simulate(const Program& program, const Compiled& compiled,
                                            const CostTable& costs);

}  // namespace polyphony::sim
