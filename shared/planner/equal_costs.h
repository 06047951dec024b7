// Costs for planning or timing orders of which only the actions are known: every action of a kind
// takes the same time.
#pragma once

#include <string>
#include <vector>

#include "shared/planner/step_costs.h"
#include "shared/schedule/action.h"

namespace polyphony {

// Returns the costs of one pipeline: actions take the given lengths, messages take no time. A stage
// is on the rank that runs its actions.
struct ActionLengths {
  Seconds forward{1}, input{1}, weight{1}, backward{2};
};
StepCosts equal_costs(const std::vector<Actions>& orders, const ActionLengths& lengths = {},
                      const std::string& name = "the pipeline");

}  // namespace polyphony
