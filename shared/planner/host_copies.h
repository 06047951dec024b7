// Time that offloading saved activations to host memory adds to the actions of one rank.
//   The copy to the host overlaps with the action after the forward; the copy back overlaps with
//   the action before the backward (shared/lower/lower.h). With fewer than two actions in between,
//   the activations stay on the device. A copy that takes longer than the action it overlaps with
//   lengthens the forward (copy to the host) or the backward (copy back) by the difference.
//
//   Not modeled: waits for other ranks, which would hide more of a copy.

#pragma once

#include <vector>

#include "shared/planner/step_costs.h"
#include "shared/schedule/action.h"

namespace polyphony {

// The offload of one (stage, microbatch) on a rank: positions of its actions in the rank's order.
struct Trip {
  std::size_t branch = 0, at = 0;  // at: index into BranchCosts::costs
  int forward = 0;
  int backward = -1;      // the action that receives the gradient; -1: there is none
  int last = 0;           // the action that frees the saved activations: B, or W
  Seconds out{}, back{};  // duration of the action that each copy overlaps with
  bool goes() const { return backward - forward > 2; }
  Seconds paid_out(Seconds copy) const { return goes() && copy > out ? copy - out : Seconds(0); }
  Seconds paid_back(Seconds copy) const { return goes() && copy > back ? copy - back : Seconds(0); }
};
// Returns the trips of a rank, in the order of their forwards.
std::vector<Trip> find_trips(const StepCosts& costs, const Actions& order);

// Adds the time of copies that is not hidden (for StageCost::moved bytes) to forwards and
// backwards.
void pay_for_copies(const std::vector<Actions>& orders, StepCosts& costs);

}  // namespace polyphony
