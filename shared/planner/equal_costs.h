// Costs for orders of which nothing is known but the turns.
#pragma once

#include <string>
#include <vector>

#include "shared/planner/step_costs.h"
#include "shared/schedule/turn.h"

namespace polyphony {

// One pipeline's turns last what their kind does, messages nothing. Stages stand on the ranks that run them.
struct TurnLengths {
  Seconds forward{1}, input{1}, weight{1}, backward{2};
};
StepCosts equal_costs(const std::vector<Turns>& orders, const TurnLengths& lengths = {},
                      const std::string& name = "the pipeline");

}  // namespace polyphony
