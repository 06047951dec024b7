// What the Player is compared with: the same activities as a graph that SimGrid holds itself, built
// whole before the run and joined by add_successor, as SimGrid's own DAG examples do.
//   A compute node is an Exec on its rank; a message a Comm, its delay the latency of the links; a
//   collective an Exec for its delay, then a Comm per ring edge, then an empty Exec that joins
//   them. Joins of one activity disappear. Source: SimGrid 4.1, examples/cpp/dag-simple.
#pragma once

#include "shared/cost/cost.h"
#include "shared/graph/compile.h"

namespace polyphony::tests {

struct PrebuiltRun {
  Seconds build{};                 // platform, activities and dependencies
  Seconds run{};                   // starting them, and Engine::run()
  Seconds cpu_build{}, cpu_run{};  // the same, of the processor
  Seconds step{};                  // what it predicts
};

// In a forked child, as sim::play().
PrebuiltRun run_prebuilt(const Program& program, const Compiled& compiled, const CostTable& costs);

// Activities that take time: compute nodes and flows. The Player's and the graph's alike.
std::uint64_t count_activities(const Compiled& compiled, const CostTable& costs);

}  // namespace polyphony::tests
