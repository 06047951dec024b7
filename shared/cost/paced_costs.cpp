#include "shared/cost/paced_costs.h"

#include <algorithm>

#include "shared/cost/compute_time.h"

namespace polyphony {

void apply_pace(const Program& program, const Compiled& compiled, const Cluster& cluster,
                const PaceModel& pace, CostTable& costs) {
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    if (!std::holds_alternative<Compute>(program.ops[op].what)) continue;
    // Ranks that run an op together share a node, which takes as long as the slowest rank.
    Seconds& duration = costs.nodes[compiled.op_start[op]].duration;
    duration =
        std::max(duration, pace.scale * compute_time(program, OpId(op), cluster, pace.profile));
  }
}

}  // namespace polyphony
