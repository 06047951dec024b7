// Costs for orders of which nothing is known but the actions.
#pragma once

#include <string>
#include <vector>

#include "shared/planner/step_costs.h"
#include "shared/schedule/action.h"

namespace polyphony {

// One pipeline's actions last what their kind does, messages nothing. Stages stand on the ranks that run them.
struct ActionLengths {
  Seconds forward{1}, input{1}, weight{1}, backward{2};
};
StepCosts equal_costs(const std::vector<Actions>& orders, const ActionLengths& lengths = {},
                      const std::string& name = "the pipeline");

}  // namespace polyphony
