// Properties of the action orders of a pipeline's ranks, whatever schedule made them: how many
// microbatches are in flight, and how far forwards run ahead. Start and end times of the actions:
// shared/planner/timetable.h.
#pragma once

#include <string>
#include <vector>

#include "shared/schedule/schedule.h"

namespace polyphony {

// Returns by how many forwards of a stage the order runs ahead of its backwards at most: no more
// than n + lead forwards come before the n-th backward (n = 1, 2, …).
int forward_lead(const Actions& order, int branch, int stage);

// Number of microbatches in flight on one stage while an action runs.
//   tapes    microbatches between F and the end of B or I: their activations are saved
//   weights  microbatches between I and the end of W
//   both     microbatches counted in both, because their I is running
struct InFlight {
  std::uint32_t tapes = 0, weights = 0, both = 0;
  bool operator==(const InFlight&) const = default;
};
// Returns true if `a` holds at least as much as `b` in every stage.
bool covers(const std::vector<InFlight>& a, const std::vector<InFlight>& b);
// The largest loads of a rank, per stage that its order visits. A rank with several stages may hold
// most microbatches of one stage while it holds few of another, so several moments are kept: those
// whose load is not covered by that of another moment.
struct StagesInFlight {
  std::vector<std::uint16_t> stages;  // ascending; stages of `branch` only
  std::vector<std::vector<InFlight>> moments;
};
StagesInFlight in_flight(const Actions& order, int branch = 0);
// Returns the largest number of microbatches with saved activations on a rank, over all its stages.
int tapes_in_flight(const Actions& order, int branch = 0);

// Returns "F microbatch 3 of stage 2".
std::string describe(const Action& action);

}  // namespace polyphony
