#include "shared/screen/balanced_plan.h"

#include "shared/cost/layer_costs.h"
#include "shared/scenario/typical_batch.h"

namespace polyphony {

Plan balanced_plan(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile) {
  if (is_split(scenario.model, layout)) return make_plan(scenario, layout);
  return balanced_plan(scenario, layout, profile,
                       module_sizes(scenario.model, typical_batch(scenario)));
}

Plan balanced_plan(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile,
                   const std::vector<WorkSize>& typical) {
  if (is_split(scenario.model, layout)) return make_plan(scenario, layout);
  return make_plan(scenario, layout, layer_costs(scenario, layout, typical, profile));
}

}  // namespace polyphony
