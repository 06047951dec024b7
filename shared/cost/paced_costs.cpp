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

void scale_times(CostTable& costs, double factor) {
  for (NodeCost& node : costs.nodes) {
    node.duration *= factor;
    node.delay *= factor;
  }
  Network& network = costs.network;
  for (BytesPerSecond* rate :
       {&network.node_rate, &network.fabric_rate, &network.bus_rate, &network.connection,
        &network.leaf_rate, &network.host_rate, &network.host_memory_rate})
    *rate = BytesPerSecond(rate->value / factor);
}

}  // namespace polyphony
