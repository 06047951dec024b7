// What copies of tapes to the host and back cost the actions of one rank beyond the room that they have
// beside others (shared/lower/lower.h): out while the action behind the forward runs, back while the one before
// the backward does. Where fewer than two actions lie between, a tape stays. What a copy takes longer than
// its room is paid: by the forward, by the backward.
//   Not modelled: waits for other ranks, which hide more.

#pragma once

#include <vector>

#include "shared/planner/step_costs.h"
#include "shared/schedule/action.h"

namespace polyphony {

// A (stage, work) on a rank: positions of its actions in the rank's order.
struct Trip {
  std::size_t branch = 0, at = 0;  // at: in BranchCosts::costs
  int forward = 0;
  int backward = -1;      // takes the gradient; -1: there is none
  int last = 0;           // frees what is kept: its weight part where that is apart
  Seconds out{}, back{};  // room beside other actions
  bool goes() const { return backward - forward > 2; }
  Seconds paid_out(Seconds copy) const { return goes() && copy > out ? copy - out : Seconds(0); }
  Seconds paid_back(Seconds copy) const { return goes() && copy > back ? copy - back : Seconds(0); }
};
// In the order of their forwards.
std::vector<Trip> find_trips(const StepCosts& costs, const Actions& order);

// What is paid for tapes that go (StageCost::moved), in the times of their forwards and backwards.
void pay_for_copies(const std::vector<Actions>& orders, StepCosts& costs);

}  // namespace polyphony
