// The number of microbatches in flight on a rank while its actions run, for every stage that it
// holds, of all branches. Only the moments with the most in flight are kept: none that another
// moment of the same running action equals or exceeds. Source: own count, from the orders of
// shared/step/step_plan.h.
#pragma once

#include <vector>

#include "shared/schedule/action.h"
#include "shared/schedule/orders.h"

namespace polyphony {

struct StageOfBranch {
  std::uint16_t branch = 0, stage = 0;
  auto operator<=>(const StageOfBranch&) const = default;
};
// The running action counts as in flight: the saved activations of a forward already exist, and
// those of a backward still do.
struct ActionMoment {
  std::uint16_t running = 0;  // position in RankMoments::stages
  ActionKind kind = ActionKind::forward;
  std::vector<InFlight> held;  // by stage
};
struct RankMoments {
  std::vector<StageOfBranch> stages;  // ascending
  std::vector<ActionMoment> moments;
  bool splits = false;     // some weight parts of backwards are actions of their own
  std::size_t branch = 0;  // a branch along whose pipeline the rank lies,
  int index = 0;           // and its index there
};
// Returns the moments of a rank that runs these actions.
RankMoments moments_of(const Actions& actions);

}  // namespace polyphony
