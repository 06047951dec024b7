// What a rank holds while its turns run: of every stage that it has, of all branches, how many works
// are in flight. Only moments that no other of the same running turn exceeds. Own count, of
// shared/step/step_plan.h's orders.
#pragma once

#include <vector>

#include "shared/schedule/orders.h"
#include "shared/schedule/turn.h"

namespace polyphony {

struct StageOfBranch {
  std::uint16_t branch = 0, stage = 0;
  auto operator<=>(const StageOfBranch&) const = default;
};
// The turn in hand counts as in flight: a forward's tape is there, a backward's not gone.
struct TurnMoment {
  std::uint16_t running = 0;  // position in RankMoments::stages
  TurnKind kind = TurnKind::forward;
  std::vector<InFlight> held;  // by stage
};
struct RankMoments {
  std::vector<StageOfBranch> stages;  // ascending
  std::vector<TurnMoment> moments;
  bool splits = false;     // some weight parts are turns of their own
  std::size_t branch = 0;  // the rank is along the pipeline of this one,
  int index = 0;           // at this place
};
RankMoments moments_of(const Turns& turns);

}  // namespace polyphony
