// Into what modules and microbatches are cut for planner dip, before any step: sub-microbatches that encoders
// work off efficiently, segments (sweeps over all ranks of the pipeline) in which modules take alike long, from
// the profile's times (shared/planner/segment_counts.h). All modules stand on the language module's ranks.
//   items of an encoder  those of the typical batch in the middle, as many as the fullest microbatch holds
//   segments             no more than there are blocks for; of all modules one where the schedule of
//                        several refuses the microbatches
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/plan/plan.h"

namespace polyphony::sim {

struct SegmentRow {
  std::string module;
  int items = 0;  // of a sub-microbatch; 0: the language module, which takes microbatches
  int parts = 1;  // of a microbatch
  int segments = 1;
  Seconds latency{};      // forward and backward of one of these through all of the module
  double rate_share = 1;  // items a second, of the best size's
};
struct SegmentsAnswer {
  const Scenario* scenario = nullptr;
  std::vector<SegmentRow> rows;
  Layout layout;
  Seconds step{}, given_step{};    // estimated; of the layout as the scenario has it
  Bytes memory{}, given_memory{};  // of the worst rank
};

// Infeasible: no layout of this kind is legal, with the reason. InputError: the scenario has no layout.
std::variant<SegmentsAnswer, Infeasible> answer_segments(const Scenario& scenario,
                                                         const HardwareProfile& profile);

}  // namespace polyphony::sim
