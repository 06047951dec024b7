// A layout whose stages are fixed: what predictions, answers and runs start from. Planned once,
// then passed on.
//
//   PlanInputs     the scenario, the profile, and the batch that stages are balanced for; made
//                  once, shared by all layouts that are planned for them
//   PlannedLayout  one layout, and which layers are on which ranks
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "shared/hardware/hardware.h"
#include "shared/plan/plan.h"
#include "shared/scenario/scenario.h"
#include "shared/work/work_size.h"

namespace polyphony {

class PlanInputs {
 public:
  PlanInputs(const Scenario& scenario, const HardwareProfile& profile)
      : scenario_(scenario), profile_(profile) {}

  const Scenario& scenario() const { return scenario_; }
  const HardwareProfile& profile() const { return profile_; }
  // The scenario's typical batch, and the sizes of its microbatches by module (module_sizes() in
  // shared/cost/layer_costs.h). Drawn at the first call. Throws InputError if the samples of the
  // data set have not been read.
  const Batch& typical() const;
  const std::vector<WorkSize>& sizes() const;

 private:
  const Scenario& scenario_;
  const HardwareProfile& profile_;
  mutable std::once_flag drawn_;
  mutable Batch typical_;
  mutable std::vector<WorkSize> sizes_;
};

struct PlannedLayout {
  std::shared_ptr<const PlanInputs> inputs;
  Layout layout;    // as given
  Plan plan;        // its stages on ranks
  Layout resolved;  // the layout with the `blocks` of the plan

  const Scenario& scenario() const { return inputs->scenario(); }
  const HardwareProfile& profile() const { return inputs->profile(); }
};

// Refers to the scenario and the profile, which must outlive every PlannedLayout made from it.
std::shared_ptr<const PlanInputs> borrow_inputs(const Scenario& scenario,
                                                const HardwareProfile& profile);

// Plans the layout. It must be accepted by check_layout(). Stages that `blocks` do not state are
// split as in shared/split/balanced_plan.h.
PlannedLayout plan_layout(std::shared_ptr<const PlanInputs> inputs, const Layout& layout);

// Returns how many layouts this thread has planned. For tests that check that none is planned
// twice.
std::uint64_t layouts_planned();

}  // namespace polyphony
