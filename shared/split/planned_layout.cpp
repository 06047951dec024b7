#include "shared/split/planned_layout.h"

#include <utility>

#include "shared/cost/layer_costs.h"
#include "shared/scenario/typical_batch.h"
#include "shared/split/balanced_plan.h"

namespace polyphony {
namespace {

thread_local std::uint64_t planned = 0;

}  // namespace

const Batch& PlanInputs::typical() const {
  std::call_once(drawn_, [&] {
    typical_ = typical_batch(scenario());
    sizes_ = module_sizes(scenario().model, typical_);
  });
  return typical_;
}

const std::vector<WorkSize>& PlanInputs::sizes() const {
  typical();
  return sizes_;
}

std::shared_ptr<const PlanInputs> borrow_inputs(const Scenario& scenario,
                                                const HardwareProfile& profile) {
  return std::make_shared<PlanInputs>(scenario, profile);
}

PlannedLayout plan_layout(std::shared_ptr<const PlanInputs> inputs, const Layout& layout) {
  ++planned;
  const Scenario& scenario = inputs->scenario();
  PlannedLayout result{std::move(inputs), layout, {}, {}};
  result.plan = is_split(scenario, layout)
                    ? make_plan(scenario, layout)
                    : balanced_plan(scenario, layout, result.profile(), result.inputs->sizes());
  result.resolved = with_blocks(layout, result.plan);
  return result;
}

std::uint64_t layouts_planned() { return planned; }

}  // namespace polyphony
