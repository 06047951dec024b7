// Layer costs agree with the costs of a Program's ops, and stages are balanced by them.
#include "shared/cost/layer_costs.h"

#include <doctest/doctest.h>

#include "shared/cost/cost_model.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "shared/split/balanced_plan.h"
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
  // All samples are equal, so that every microbatch is the average one.
  TEST_CASE("the sum of layer costs is the cost of the ops of one microbatch") {
    Scenario scenario = examples::small_on_cpu(4, 16);
    scenario.model.modules[0].trainable = Trainable::frozen;
    const HardwareProfile profile = *find_profile("cpu-core-roofline");
    for (const Recompute recompute : {Recompute::none, Recompute::full}) {
      Layout layout = pipeline(scenario, 2, 2, 4);
      for (ModuleLayout& grid : layout.modules) grid.recompute = recompute;
      Seconds all{}, ops{};
      for (const std::vector<LayerCost>& module : costs_of(scenario, layout, profile))
        for (const LayerCost& layer : module) all += layer.total();
      const Program program = lower(scenario, layout, balanced_plan(scenario, layout, profile),
                                    typical_batch(scenario));
      for (std::uint32_t i = 0; i < program.ops.size(); ++i)
        if (std::holds_alternative<Compute>(program.ops[i].what))
          ops += compute_time(program, OpId(i), scenario.cluster, profile) - profile.op_overhead;
      CHECK(ops.count() / (4 * 2) == doctest::Approx(all.count()).epsilon(1e-9));  // works, tp
    }
  }

  // Over edges of the model, whatever the modality; strictly upstream.
  TEST_CASE("a layer has a backward cost only if it or a layer upstream is trained") {
    const HardwareProfile profile = *find_profile("cpu-core-roofline");
    const auto costs = [&](Trainable vision, Trainable projector, Trainable language,
                           Recompute recompute = Recompute::none) {
      Scenario scenario = examples::small_on_cpu(1, 1);
      scenario.model.modules[0].trainable = vision;
      scenario.model.modules[1].trainable = projector;
      scenario.model.modules[2].trainable = language;
      for (Module& module : scenario.model.modules)
        if (module.trainable == Trainable::lora) module.lora_rank = 4;
      Layout layout = pipeline(scenario, 1, 1, 1);
      for (ModuleLayout& grid : layout.modules) grid.recompute = recompute;
      return costs_of(scenario, layout, profile);
    };
    constexpr Trainable kFull = Trainable::full, kFrozen = Trainable::frozen;
    const auto backward = [](const std::vector<LayerCost>& module) {
      Seconds sum{};
      for (const LayerCost& layer : module) sum += layer.backward;
      return sum;
    };
    const LayerCosts all = costs(kFull, kFull, kFull), bridge = costs(kFrozen, kFull, kFrozen),
                     lora = costs(kFrozen, kFrozen, Trainable::lora),
                     encoder = costs(kFull, kFrozen, kFrozen),
                     again = costs(kFrozen, kFull, kFrozen, Recompute::full);
    CHECK(backward(bridge[0]) == Seconds(0));
    CHECK(backward(again[0]) == Seconds(0));  // without a backward pass, there is no recomputation
    CHECK(backward(lora[0]) == Seconds(0));
    CHECK(backward(lora[1]) == Seconds(0));
    // The first trained layer makes no gradient of its input.
    CHECK(bridge[1][0].backward < all[1][0].backward);
    CHECK(encoder[1][0].backward > Seconds(0));
    CHECK(lora[2][0].backward == Seconds(0));  // the embedding: nothing of it trains
    CHECK(lora[2][1].backward < lora[2][2].backward);
    for (const std::size_t block : {2, 3}) {
      const LayerCost &trained = all[2][block], &passing = bridge[2][block];
      CHECK(passing.forward == trained.forward);
      CHECK(passing.backward > Seconds(0));
      CHECK(passing.backward < trained.backward);
      CHECK(lora[2][block].backward > passing.backward);
      CHECK(lora[2][block].backward < trained.backward);
      CHECK((again[2][block].backward - passing.backward).count() ==
            doctest::Approx(passing.forward.count()));
    }
  }

  // Of 8 samples in 2 microbatches: 4 images of 16 patches, 4 · (4 + 8) positions, fp32. Two
  // tensor-parallel ranks with sequence parallelism send half of the rows each.
  TEST_CASE("bytes of the rows that leave a layer") {
    const Scenario scenario = examples::small_on_cpu(2, 8);
    Layout layout = pipeline(scenario, 2, 1, 2);
    const HardwareProfile profile = *find_profile("cpu-core-roofline");
    LayerCosts costs = costs_of(scenario, layout, profile);
    CHECK(costs[0][2].sent == Bytes(4 * 64 * 16 * 4));
    CHECK(costs[1][0].sent == Bytes(4 * 96 * 4 * 4));
    CHECK(costs[2][3].sent == Bytes(4 * 96 * 48));
    for (ModuleLayout& grid : layout.modules) grid.sp = true;
    CHECK(costs_of(scenario, layout, profile)[2][3].sent == Bytes(2 * 96 * 48));
  }

  // A vision layer that moves as much as it computes is slower than its FLOPs say.
  TEST_CASE("a profile moves the split away from equal FLOPs") {
    Scenario scenario = examples::vlm_on_h100();
    scenario.cluster.device.memory = Bytes(0);  // not known: all splits fit
    const Layout layout = pipeline(scenario, 8, 8, 64);
    HardwareProfile slow_vision = *find_profile("h100-roofline");
    for (const Phase phase : {Phase::forward, Phase::backward})
      slow_vision.corrections[{LayerKind::encoder_block, phase}] = 2;
    const Splitting by = splitting(scenario, layout, slow_vision,
                                   module_sizes(scenario.model, typical_batch(scenario)));
    const auto blocks = [&](const Plan& plan) {
      return plan.branches.front().stages.front().chunks.front().layers.size();
    };
    const Plan by_flops = make_plan(scenario, layout), by_time = make_plan(scenario, layout, by);
    CHECK(blocks(by_time) < blocks(by_flops));
    CHECK(balanced_plan(scenario, layout, slow_vision).branches.front().stages ==
          by_time.branches.front().stages);
  }
}

}  // namespace polyphony
