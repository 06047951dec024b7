#include "sim/sweep/written_layout.h"

#include "shared/check/check.h"
#include "shared/cost/layer_costs.h"
#include "shared/scenario/typical_batch.h"
#include "shared/split/balanced_plan.h"
#include "shared/text/figure_text.h"

namespace polyphony::sim {

Sweep written_layout(const Scenario& scenario, const HardwareProfile& profile,
                     const SweepOptions& options) {
  Sweep result;
  result.profile = profile.name;
  result.stack = profile.stack.name;
  result.stated_error = profile.step_error;
  result.footing = profile.certainty.footing;
  const Layout& layout = require_layout(scenario);
  const Batch batch = typical_batch(scenario);
  const std::vector<WorkSize> sizes = module_sizes(scenario.model, batch);
  Candidate candidate;
  candidate.layout = layout;
  candidate.costs = scenario.planner_costs;
  candidate.text = describe(scenario.model, layout);
  adopt(examine_candidate(Question(borrow_inputs(scenario, profile)), options.predictor, layout,
                          options.memory),
        candidate);
  if (!candidate.why_not.empty()) {
    result.failed.push_back(candidate.why_not);
    return result;
  }
  if (!candidate.figures.fits()) {
    result.failed.push_back("needs " + bytes_text(candidate.figures.needed_memory()) +
                            " of a device's " + bytes_text(candidate.figures.device_memory));
    return result;
  }
  candidate.belief =
      make_belief(candidate.figures.step, candidate.effects, profile, scenario, candidate.layout);
  result.combinations = 1;
  result.legal = 1;
  result.simulated = candidate.simulated ? 1 : 0;
  result.estimated = 1;
  result.ranked.push_back(std::move(candidate));
  return result;
}

Scenario with_layout_of(const Candidate& candidate, const Scenario& scenario,
                        const HardwareProfile& profile) {
  Scenario chosen = scenario;
  chosen.planner_costs = candidate.costs;
  store_planned(candidate.layout, balanced_plan(chosen, candidate.layout, profile), chosen);
  chosen.search.reset();
  return chosen;
}

}  // namespace polyphony::sim
