// A text-only language module on one pipeline, for tests of schedules.
#pragma once

#include "shared/scenario/typical_batch.h"
#include "shared/step/step_plan.h"
#include "tests/shared/support/example_models.h"

namespace polyphony::examples {

// Eight samples a rank, of six text tokens each.
inline Scenario text_only(int ranks, int layers) {
  Scenario scenario = small_on_cpu(ranks, 8 * ranks);
  scenario.model = {{scenario.model.modules.back()}, {}};
  scenario.model.modules[0].layers = layers;
  scenario.data.source = SyntheticData{always(0), always(6), always(2)};
  return scenario;
}

inline Layout one_grid(ScheduleKind kind, int pp, int vpp, int dp, int microbatches) {
  ModuleLayout grid;
  grid.pp = pp;
  grid.vpp = vpp;
  grid.ranks = pp * dp;
  Layout layout{.placement = Placement::homogeneous, .modules = {grid}, .schedule = kind};
  layout.microbatches = microbatches;
  return layout;
}

struct OnePipeline {
  Scenario scenario;
  Layout layout;
  Plan plan;
  Batch batch;
  StepPlan step;

  // One block a stage.
  OnePipeline(ScheduleKind kind, int pp, int vpp, int microbatches)
      : scenario(text_only(pp, pp * vpp)),
        layout(one_grid(kind, pp, vpp, 1, microbatches)),
        plan(make_plan(scenario, layout)),
        batch(typical_batch(scenario)),
        step(make_step_plan(scenario, layout, plan, batch)) {}
};

}  // namespace polyphony::examples
