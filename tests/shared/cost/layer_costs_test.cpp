// Layer costs are what a Program's ops cost, layer by layer, and what stages are balanced by.
#include "shared/cost/layer_costs.h"

#include <doctest/doctest.h>

#include <numeric>

#include "shared/cost/cost_model.h"
#include "shared/plan/lower.h"
#include "shared/scenario/typical_batch.h"
#include "shared/screen/balanced_plan.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {
namespace {

Layout pipeline(const Scenario& scenario, int tp, int pp, int microbatches) {
  ModuleLayout grid;
  grid.tp = tp;
  grid.pp = pp;
  grid.ranks = tp * pp;
  Layout layout;
  layout.modules.assign(scenario.model.modules.size(), grid);
  layout.microbatches = microbatches;
  return layout;
}

LayerCosts costs_of(const Scenario& scenario, const Layout& layout,
                    const HardwareProfile& profile) {
  return layer_costs(scenario, layout, module_sizes(scenario.model, typical_batch(scenario)),
                     profile);
}

}  // namespace

TEST_SUITE("layer costs") {
  // All samples are alike, so that every work item is the mean one.
  TEST_CASE("they add up to the ops of one work item") {
    Scenario scenario = examples::small_on_cpu(4, 16);
    scenario.model.modules[0].trainable = Trainable::frozen;
    const HardwareProfile profile = *find_profile("cpu-core-roofline");
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      Layout layout = pipeline(scenario, 2, 2, 4);
      for (ModuleLayout& grid : layout.modules) grid.recompute = recompute;
      Seconds all{}, ops{};
      for (const std::vector<Seconds>& module : costs_of(scenario, layout, profile))
        all = std::accumulate(module.begin(), module.end(), all);
      const Program program = lower(scenario, layout, balanced_plan(scenario, layout, profile),
                                    typical_batch(scenario));
      for (std::uint32_t i = 0; i < program.ops.size(); ++i)
        if (std::holds_alternative<Compute>(program.ops[i].what))
          ops += compute_time(program, OpId(i), scenario.cluster, profile) - profile.op_overhead;
      CHECK(ops.count() / (4 * 2) == doctest::Approx(all.count()).epsilon(1e-9));  // works, tp
    }
  }

  // A vision layer that moves as much as it computes is slower than its FLOPs say.
  TEST_CASE("a profile moves the split away from equal FLOPs") {
    const Scenario scenario = examples::vlm_on_h100();
    const Layout layout = pipeline(scenario, 8, 8, 64);
    HardwareProfile slow_vision = *find_profile("h100-roofline");
    for (const Phase phase : {Phase::forward, Phase::backward})
      slow_vision.corrections[{LayerKind::encoder_block, phase}] = 2;
    const LayerCosts costs = costs_of(scenario, layout, slow_vision);
    const auto blocks = [&](const Plan& plan) {
      return plan.branches.front().stages.front().chunks.front().layers.size();
    };
    const Plan by_flops = make_plan(scenario, layout), by_time = make_plan(scenario, layout, costs);
    CHECK(blocks(by_time) < blocks(by_flops));
    CHECK(balanced_plan(scenario, layout, slow_vision).branches.front().stages ==
          by_time.branches.front().stages);
  }
}

}  // namespace polyphony
