// How long each activity takes: beside the Program, never in it. Made by the cost model
// (shared/cost/cost_model.h), from a measured Timeline, or from a jitter draw, so that replay,
// calibration and what-if are "the same Program, another table".
//   A node lasts
//     duration                                                  compute: kernels, dispatch, inner collectives
//     or delay, then all its flows at once, ended by the last   message: one flow; collective: one per ring edge
// Source of the bounds: own count; with one stage's work equal to the next's they are the (m + p −
// 1)(f + b) of GPipe and 1F1B (arXiv 2104.04473, §2.2).
#pragma once

#include <vector>

#include "shared/graph/compile.h"
#include "shared/hardware/network.h"
#include "shared/ids.h"
#include "shared/program/timeline.h"
#include "shared/units.h"

namespace polyphony {

// Bytes that cross the links between two ranks. Zero bytes: nothing to do.
struct Flow {
  Rank source, destination;
  Bytes bytes{};
  bool operator==(const Flow&) const = default;
};

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

// Time of one node alone on the machine: duration + delay + its slowest flow. A flow from a rank to
// itself crosses no link and takes no time (the cost of a local copy belongs in `duration`).
Seconds unshared_time(const CostTable& costs, std::uint32_t node);

// Lower bounds of simulate().
struct StepBounds {
  Seconds longest_path{};    // no two flows ever share a link
  Seconds busiest_link{};    // work ÷ capacity of the most loaded link
  Seconds busiest_stream{};  // sum of op durations of the most loaded compute stream
  Seconds step() const;      // the largest of the three
};
struct Estimate : StepBounds {
  Timeline timeline;  // of the longest path
};
Estimate estimate(const Program& program, const Compiled& compiled, const CostTable& costs);
// The same bounds, to the last bit, without a Timeline.
StepBounds estimate_step(const Compiled& compiled, const CostTable& costs);

}  // namespace polyphony
