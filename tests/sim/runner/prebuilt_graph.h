// The reference for the speed of the Player: the same activities as a graph inside SimGrid, built
// before the run and connected by add_successor, as in SimGrid's own DAG examples.
//
// A compute node is an Exec on its rank. A message is a Comm, with its delay as the latency of the
// links. A collective is an Exec for its delay, then a Comm per ring edge, then an empty Exec that
// joins them; a join of a single activity is omitted.
// Source: SimGrid 4.1, examples/cpp/dag-simple.
#pragma once

#include "shared/cost/cost.h"
#include "shared/graph/compile.h"

namespace polyphony::tests {

struct PrebuiltRun {
  Seconds build{};                 // platform, activities and dependencies
  Seconds run{};                   // starting them, and Engine::run()
  Seconds cpu_build{}, cpu_run{};  // the same in processor time
  Seconds step{};                  // the predicted step time
};

// In a forked child, as sim::play().
PrebuiltRun run_prebuilt(const Program& program, const Compiled& compiled, const CostTable& costs);

// Returns the number of activities that take time: compute nodes and flows, in the Player as in the
// graph.
std::uint64_t count_activities(const Compiled& compiled, const CostTable& costs);

}  // namespace polyphony::tests
