// In which order one rank runs the work items of a branch's stages.
//   gpipe        all forwards, then all backwards, in the same order
//   1f1b         warm-up of (stages after it) forwards, then one forward, one backward in turn
//   interleaved  1f1b over virtual stages: microbatches go through in groups of pp, each group
//                through chunk 0, then chunk 1, …; warm-up 2·(pp − p − 1) + (vpp − 1)·pp.
//                microbatches must be a multiple of pp
//   zero_bubble  (ZB-H1) 1f1b whose backwards give the input gradient alone; stage s runs the
//   weight
//                part s microbatches later, so that gradients reach the stages before it sooner and
//                the weight parts fill the end. As many tapes in flight as 1f1b
// Sources: Huang et al., arXiv 1811.06965; Narayanan et al., arXiv 2104.04473 §2.2; Qi et al.,
// arXiv 2401.10241 §3.1.
#pragma once

#include <vector>

#include "shared/model/layout.h"

namespace polyphony {

enum class Turn : std::uint8_t { forward, backward, weight };

struct Slot {
  Turn turn = Turn::forward;
  int microbatch = 0;
  int chunk = 0;  // virtual stage on this rank
  bool operator==(const Slot&) const = default;
};

struct PipelineShape {
  int stages = 1;  // ranks along the pipeline
  int virtual_stages = 1;
  int after = 0;  // stages of other branches that follow the last one
};

// Of the rank at pipeline index `stage`.
std::vector<Slot> stage_order(ScheduleKind kind, const PipelineShape& shape, int stage,
                              int microbatches);

// How many forwards of chunk 0 the order runs ahead of its backwards at most: the n-th backward
// needs n + lead forwards before it.
int forward_lead(const std::vector<Slot>& order);
// The order of a stage `distance` (1: the last) before a branch whose first rank has `lead`.
std::vector<Slot> feeding_order(int lead, int distance, int microbatches);

}  // namespace polyphony
