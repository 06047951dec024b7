#include "shared/planner/equal_costs.h"

#include <algorithm>

namespace polyphony {

StepCosts equal_costs(const std::vector<Turns>& orders, const TurnLengths& lengths,
                      const std::string& name) {
  StepCosts costs{static_cast<int>(orders.size()), 0, {BranchCosts{name, {}, {}, {}}}, {}};
  BranchCosts& branch = costs.branches[0];
  branch.learns = false;
  for (const Turns& turns : orders)
    for (const Turn& turn : turns) {
      costs.microbatches = std::max(costs.microbatches, turn.work + 1);
      if (turn.stage >= branch.stages()) branch.rank_of_stage.resize(turn.stage + std::size_t{1});
    }
  for (int k = 0; k < costs.microbatches; ++k) branch.microbatch_of.push_back(k);
  branch.costs.assign(branch.rank_of_stage.size() * branch.microbatch_of.size(),
                      {lengths.forward, lengths.input, lengths.weight, {}, {}});
  for (std::size_t r = 0; r < orders.size(); ++r)
    for (const Turn& turn : orders[r]) {
      branch.rank_of_stage[turn.stage] = static_cast<int>(r);
      if (is_forward(turn)) continue;
      branch.learns = true;
      if (turn.kind != TurnKind::backward) continue;
      StageCost& cost = branch.costs[turn.stage * branch.microbatch_of.size() +
                                     static_cast<std::size_t>(turn.work)];
      cost.input = lengths.backward;
      cost.weight = Seconds(0);
    }
  return costs;
}

}  // namespace polyphony
