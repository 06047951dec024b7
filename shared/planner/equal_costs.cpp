#include "shared/planner/equal_costs.h"

#include <algorithm>

namespace polyphony {

StepCosts equal_costs(const std::vector<Actions>& orders, const ActionLengths& lengths,
                      const std::string& name) {
  StepCosts costs{static_cast<int>(orders.size()), 0, {BranchCosts{name, {}, {}, {}}}, {}};
  BranchCosts& branch = costs.branches[0];
  branch.learns = false;
  for (const Actions& actions : orders)
    for (const Action& action : actions) {
      costs.microbatches = std::max(costs.microbatches, action.work + 1);
      if (action.stage >= branch.stages())
        branch.rank_of_stage.resize(action.stage + std::size_t{1});
    }
  for (int k = 0; k < costs.microbatches; ++k) branch.microbatch_of.push_back(k);
  branch.costs.assign(branch.rank_of_stage.size() * branch.microbatch_of.size(),
                      {lengths.forward, lengths.input, lengths.weight, {}, {}});
  for (std::size_t r = 0; r < orders.size(); ++r)
    for (const Action& action : orders[r]) {
      branch.rank_of_stage[action.stage] = static_cast<int>(r);
      if (is_forward(action)) continue;
      branch.learns = true;
      if (action.kind != ActionKind::backward) continue;
      StageCost& cost = branch.costs[action.stage * branch.microbatch_of.size() +
                                     static_cast<std::size_t>(action.work)];
      cost.input = lengths.backward;
      cost.weight = Seconds(0);
    }
  return costs;
}

}  // namespace polyphony
