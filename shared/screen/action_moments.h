// What a rank holds while its actions run: of every stage that it has, of all branches, how many works
// are in flight. Only moments that no other of the same running action exceeds. Own count, of
// shared/step/step_plan.h's orders.
#pragma once

#include <vector>

#include "shared/schedule/action.h"
#include "shared/schedule/orders.h"

namespace polyphony {

struct StageOfBranch {
  std::uint16_t branch = 0, stage = 0;
  auto operator<=>(const StageOfBranch&) const = default;
};
// The action in hand counts as in flight: a forward's tape is there, a backward's not gone.
struct ActionMoment {
  std::uint16_t running = 0;  // position in RankMoments::stages
  ActionKind kind = ActionKind::forward;
  std::vector<InFlight> held;  // by stage
};
struct RankMoments {
  std::vector<StageOfBranch> stages;  // ascending
  std::vector<ActionMoment> moments;
  bool splits = false;     // some weight parts are actions of their own
  std::size_t branch = 0;  // the rank is along the pipeline of this one,
  int index = 0;           // at this place
};
RankMoments moments_of(const Actions& actions);

}  // namespace polyphony
