// The answer of `polyphony plan --segments`: how modules and microbatches should be divided for
// planner dip, from the profile's times (shared/planner/segment_counts.h). All modules are placed
// on the language module's ranks.
//   sub-microbatches   Of a size that encoders process efficiently. Sizes from one item to the
//                      number of items in the fullest microbatch are evaluated, with items of the
//                      median size in the typical batch.
//   segments           Passes over all ranks of the pipeline, chosen so that segments of all
//                      modules take about the same time. At most one per block. One for every
//                      module if the interleaved schedule does not allow this number of
//                      microbatches.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/plan/plan.h"

namespace polyphony::sim {

struct SegmentRow {
  std::string module;
  int items = 0;  // per sub-microbatch; 0: the language module, which processes whole microbatches
  int parts = 1;  // sub-microbatches per microbatch
  int segments = 1;
  Seconds latency{};      // forward and backward pass of one sub-microbatch through the module
  double rate_share = 1;  // items per second at this size / those at the best size
};
struct SegmentsAnswer {
  const Scenario* scenario = nullptr;
  std::vector<SegmentRow> rows;
  Layout layout;
  Seconds step{}, given_step{};    // estimated; given: of the scenario's own layout
  Bytes memory{}, given_memory{};  // peak of the worst rank
};

// Returns Infeasible, with the reason, if no layout of this kind is legal. Throws InputError if the
// scenario has no layout.
std::variant<SegmentsAnswer, Infeasible> answer_segments(const Scenario& scenario,
                                                         const HardwareProfile& profile);

}  // namespace polyphony::sim
