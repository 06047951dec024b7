#include "sim/plan_answers/plan_splits.h"

#include <algorithm>
#include <numeric>

#include "shared/plan/stages.h"
#include "shared/scenario/typical_batch.h"
#include "shared/screen/bound.h"
#include "shared/split/balanced_plan.h"

namespace polyphony::sim {
namespace {

class Splits {
 public:
  Splits(const Scenario& scenario, const Layout& layout, const Plan& plan, const Splitting& by,
         const HardwareProfile& profile)
      : scenario_(scenario),
        written_(layout),
        split_(with_blocks(layout, plan)),
        plan_(plan),
        by_(by),
        screen_(scenario, profile, typical_batch(scenario)) {
    split_.balance = Balance::aware;  // the actual costs, whichever balance made the split
  }

  // Returns the answer for one branch. `best`: the blocks that an aware balance chooses.
  PlannedSplit of(const Branch& branch, const std::vector<int>& best) {
    const std::vector<ModuleId> modules = owners(branch);
    const std::vector<int>& ranks = branch.rank_of_stage;
    owner_ = plan_.branches.size() == 1 ? split_.modules.size() - 1 : modules.front().value;
    const Chain chain = chain_of(scenario_.model, split_, by_, modules, branch.grid, ranks);
    PlannedSplit split;
    for (const ModuleId id : modules)
      split.branch += (split.branch.empty() ? "" : " + ") + scenario_.model.modules[id.value].name;
    split.given = !written_.modules[owner_].blocks.empty();
    split.blocks = branch.grid.blocks;
    split.exact = branch.grid.vpp == 1;
    const std::vector<double> costs = rank_costs(chain, ranks, split.blocks);
    const auto bottleneck = std::max_element(costs.begin(), costs.end());
    split.bottleneck_time = Seconds(*bottleneck);
    split.mean = Seconds(std::accumulate(costs.begin(), costs.end(), 0.0) /
                         static_cast<double>(costs.size()));
    for (std::size_t s = 0; s < ranks.size(); ++s)
      if (ranks[s] == bottleneck - costs.begin())
        split.bottleneck += (split.bottleneck.empty() ? "stage " : " + ") + std::to_string(s);
    const auto other = [&](const std::vector<int>& blocks) {
      const std::vector<double> of = rank_costs(chain, ranks, blocks);
      Layout layout = split_;
      layout.modules[owner_].blocks = blocks;
      return OtherSplit{blocks, Seconds(*std::max_element(of.begin(), of.end())),
                        screen_.footprint(layout).memory};
    };
    for (std::size_t s = 0; s + 1 < ranks.size(); ++s) {
      PlannedSplit::Boundary boundary;
      std::vector<int> moved = split.blocks;
      ++moved[s];
      if (--moved[s + 1] > 0) boundary.earlier = other(moved);
      moved = split.blocks;
      ++moved[s + 1];
      if (--moved[s] > 0) boundary.later = other(moved);
      split.boundaries.push_back(boundary);
    }
    if (best != split.blocks)
      split.better = other(best);
    else if (const std::vector<int> next = next_best(chain, ranks, best); !next.empty())
      split.next = other(next);
    return split;
  }

 private:
  std::vector<ModuleId> owners(const Branch& branch) const {
    std::vector<ModuleId> modules;
    for (const Stage& stage : branch.stages)
      for (const Chunk& chunk : stage.chunks)
        if (grid_owner(scenario_.model, chunk.module) == chunk.module &&
            std::find(modules.begin(), modules.end(), chunk.module) == modules.end())
          modules.push_back(chunk.module);
    return modules;
  }

  const Scenario& scenario_;
  const Layout& written_;
  Layout split_;
  const Plan& plan_;
  const Splitting& by_;
  Screen screen_;
  std::size_t owner_ = 0;
};

}  // namespace

std::vector<PlannedSplit> planned_splits(const Scenario& scenario, const Layout& layout,
                                         const Plan& plan, const Splitting& by,
                                         const HardwareProfile& profile) {
  Layout aware = layout;
  aware.balance = Balance::aware;
  for (ModuleLayout& grid : aware.modules) grid.blocks.clear();
  const Plan best = balanced_plan(scenario, aware, profile);
  Splits splits(scenario, layout, plan, by, profile);
  std::vector<PlannedSplit> planned;
  for (std::size_t b = 0; b < plan.branches.size(); ++b)
    if (plan.branches[b].stages.size() > 1)
      planned.push_back(splits.of(plan.branches[b], best.branches[b].grid.blocks));
  return planned;
}

}  // namespace polyphony::sim
