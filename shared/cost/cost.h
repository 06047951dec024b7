// The duration of each node of a compiled Program (CostTable), and lower bounds of the step time.
//
// The table is separate from the Program. It comes from the cost model (shared/cost/cost_model.h),
// a measured Timeline, or a random draw of jitter. Replay, calibration and what-if questions thus
// combine the same Program with another table. How long a node lasts, by NodeKind
// (shared/graph/compile.h):
//   join        no time
//   compute     `duration`: kernels, dispatch and inner collectives of a compute op, or an
//               optimizer update
//   message     `delay`, then its one flow; a message inside one rank has a delay alone
//   copy        (to or from the host's memory) `delay`, then its one flow
//   collective  `delay`, then all flows at the same time, one per ring edge; ends with the last one
//
// Source of the bounds: own derivation. With m microbatches on a pipeline of p equal stages, on
// which a microbatch has a forward of f and a backward of b seconds, they are (m + p − 1)(f + b),
// as for GPipe and 1F1B (arXiv 2104.04473, §2.2).
#pragma once

#include <vector>

#include "shared/graph/compile.h"
#include "shared/hardware/network.h"
#include "shared/ids.h"
#include "shared/program/timeline.h"
#include "shared/units.h"

namespace polyphony {

// A transfer over the links between two ranks. With zero bytes it takes no time.
struct Flow {
  Rank source, destination;
  Bytes bytes{};
  bool operator==(const Flow&) const = default;
};

// Returns false for a flow from a rank to itself, and for an empty one: they use no links.
inline bool crosses_links(const Flow& flow) {
  return flow.source != flow.destination && flow.bytes.value > 0;
}

// The cost of one node, as above.
struct NodeCost {
  Seconds duration{};
  Seconds delay{};
  Range flows;  // positions in CostTable::flows
};

struct CostTable {
  std::vector<NodeCost> nodes;  // by Compiled node
  std::vector<Flow> flows;
  Network network;
};

// Returns the time of one node if no other flows share its links: duration + delay + slowest flow.
// A flow from a rank to itself crosses no link and takes no time (the cost of a local copy is part
// of `duration` or `delay`).
Seconds unshared_time(const CostTable& costs, std::uint32_t node);

// Lower bounds of the step time that simulate() returns.
struct StepBounds {
  Seconds longest_path{};    // longest path through the graph, if flows never share a link
  Seconds busiest_link{};    // bytes / capacity of the most loaded link
  Seconds busiest_stream{};  // sum of op durations of the most loaded compute stream
  Seconds step() const;      // the largest of the three
};
// The bounds, and the times of each op on which `longest_path` is based.
struct Estimate : StepBounds {
  Timeline timeline;  // if flows never share a link
};
// Computes bounds and timeline in one pass over the graph.
Estimate estimate(const Program& program, const Compiled& compiled, const CostTable& costs);
// Returns bitwise the same bounds, without a Timeline.
StepBounds estimate_step(const Compiled& compiled, const CostTable& costs);

}  // namespace polyphony
