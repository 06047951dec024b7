// Measured layer times in place of kernel times: the entry of a layer, and the parts of a backward
// pass.
#include "shared/hardware/measured_layers.h"

#include <doctest/doctest.h>

#include <utility>

#include "shared/cost/compute_time.h"
#include "shared/cost/degraded.h"
#include "shared/cost/layer_costs.h"
#include "shared/scenario/typical_batch.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {
namespace {

MeasuredTime seconds(double constant) { return {.constant = Seconds(constant)}; }
// Entries; -1: to the last block.
MeasuredLayers blocks(int first, int last, bool stage, int tp, double forward) {
  MeasuredLayers entry;
  entry.first = first, entry.last = last, entry.stage = stage, entry.tp = tp;
  entry.forward = seconds(forward);
  return entry;
}
ModuleLayout recomputed(Recompute recompute, std::vector<int> range = {}) {
  ModuleLayout grid;
  grid.recompute = recompute;
  grid.recompute_blocks = std::move(range);
  return grid;
}
const WorkSize kWork{.tokens = 16, .pairs = 256, .sequences = 1, .gathered = 16};

// A vision module of 4 blocks, trained or not, in front of a projector and a language module; all
// its layers take 1, 10 and 100 s.
struct Case {
  Scenario scenario = examples::small_on_cpu(4, 16);
  HardwareProfile profile = *find_profile("cpu-core-roofline");
  Case() {
    for (const MeasuredPart part :
         {MeasuredPart::blocks, MeasuredPart::input, MeasuredPart::output})
      profile.layer_times["vision"].push_back({.part = part,
                                               .forward = seconds(1),
                                               .backward_input = seconds(10),
                                               .backward_weight = seconds(100)});
  }
  Module& vision() { return scenario.model.modules[0]; }
  double time(LayerRange range, Phase phase, const ModuleLayout& grid = {}) {
    const ChunkContext context =
        chunk_context(scenario.model, ModuleId(0), range.begin, grid, NumberFormat::fp32);
    return range_time(vision(), range, phase, kWork, context, {}, profile).count();
  }
};

}  // namespace

TEST_SUITE("measured layers") {
  TEST_CASE("the first entry that names the layer: each layer, a stage, end layers, grids") {
    Module module;
    module.name = "language";
    module.layers = 4;  // positions 0 to 5
    MeasuredLayers head = blocks(0, -1, false, 0, 8);
    head.part = MeasuredPart::output;
    const MeasuredModules all{
        {"language",
         {blocks(0, 2, true, 2, 6), blocks(1, 3, false, 0, 7), head, blocks(2, 4, true, 0, 9)}}};
    const auto time = [&](int position, int tp) -> double {
      const auto found = measured_layer(all, module, position, tp, 1);
      return found ? found->share * found->times->forward.of(1).count() : -1;
    };
    // tp 2: the stage of blocks 0 and 1 has the embedding too; 8 is the head's own time.
    for (const auto& [position, expected] :
         std::vector<std::pair<int, double>>{{0, 0}, {1, 3}, {2, 3}, {3, 7}, {4, 4.5}, {5, 8}})
      CHECK(time(position, 2) == expected);
    for (const auto& [position, expected] :
         std::vector<std::pair<int, double>>{{0, -1}, {1, -1}, {2, 7}, {3, 7}, {4, 4.5}, {5, 8}})
      CHECK(time(position, 1) == expected);
    module.name = "vision";
    CHECK(time(1, 2) == -1);
  }

  TEST_CASE("a polynomial of the tokens; 0 for a microbatch without tokens") {
    const MeasuredTime time{Seconds(1), Seconds(0.5), Seconds(0.25)};
    CHECK(time.of(4).count() == 1 + 2 + 4);
    CHECK(time.of(0).count() == 0);
  }

  // The stack: an embedding, 4 blocks, a norm. Trained, nothing upstream: the embedding needs no
  // gradient of its input.
  TEST_CASE("backward: weights if the layer is trained, inputs if a layer upstream is") {
    Case in;
    CHECK(in.time({0, 6}, Phase::forward) == doctest::Approx(6));
    CHECK(in.time({0, 6}, Phase::backward) == doctest::Approx(5 * 10 + 6 * 100));
    CHECK(in.time({0, 3}, Phase::backward_input) == doctest::Approx(2 * 10));
    CHECK(in.time({0, 3}, Phase::backward_weight) == doctest::Approx(3 * 100));
    CHECK(in.time({3, 6}, Phase::backward) == doctest::Approx(3 * 110));  // the stages before train
    // LoRA: blocks alone train, the first of them has nothing trained before it.
    in.vision().trainable = Trainable::lora;
    CHECK(in.time({0, 6}, Phase::backward) == doctest::Approx(4 * 10 + 4 * 100));
    // Frozen, nothing upstream: there is no backward, and nothing is computed again for it.
    in.vision().trainable = Trainable::frozen;
    CHECK(in.time({0, 6}, Phase::backward, recomputed(Recompute::full)) == 0);
  }

  TEST_CASE("a recomputed block adds its forward time") {
    Case in;
    CHECK(in.time({0, 6}, Phase::backward, recomputed(Recompute::full)) ==
          doctest::Approx(650 + 4));
    CHECK(in.time({0, 6}, Phase::backward, recomputed(Recompute::full, {1, 3})) ==
          doctest::Approx(650 + 2));
    CHECK(in.time({0, 6}, Phase::backward_weight, recomputed(Recompute::full)) ==
          doctest::Approx(600));
    // Attention alone was not measured: what its kernels take.
    const double again = in.time({0, 6}, Phase::backward, recomputed(Recompute::selective));
    CHECK(again > 650);
    CHECK(again < 650.1);
  }

  // Published ratios (arXiv 2503.11367v4, figure 1): with F 1, Bd 1.06 and Bw 0.62, recomputed, all
  // trained 2.68 F; frozen behind something trained 2.06 F; frozen behind nothing 0.
  TEST_CASE("the published ratios of backward and forward, frozen and not") {
    Case in;
    in.profile.layer_times["vision"] = {
        {.forward = seconds(1), .backward_input = seconds(1.06), .backward_weight = seconds(0.62)}};
    const auto ratio = [&](bool trains, bool behind) {
      ChunkContext context;
      context.recompute = Recompute::full;
      context.weight_grad = trains;
      context.input_grad = behind;
      return range_time(in.vision(), {2, 4}, Phase::backward, kWork, context, {}, in.profile) /
             range_time(in.vision(), {2, 4}, Phase::forward, kWork, context, {}, in.profile);
    };
    CHECK(ratio(true, true) == doctest::Approx(2.68));
    CHECK(ratio(false, true) == doctest::Approx(2.06));
    CHECK(ratio(false, false) == 0);
  }

  TEST_CASE("stages are balanced by measured times, which a degraded device scales") {
    Case in;
    in.scenario.data.source =
        SyntheticData{examples::always(1), examples::always(8), examples::always(2)};
    const WorkSize batch = module_sizes(in.scenario.model, typical_batch(in.scenario))[0];
    const std::vector<LayerCost> costs =
        layer_costs(in.scenario, ModuleId(0), {}, 1, batch, in.scenario.cluster, in.profile);
    CHECK(costs[0].total().count() == doctest::Approx(101));
    CHECK(costs[1].total().count() == doctest::Approx(111));
    in.profile = slowed(in.profile, 0.5);
    CHECK(in.time({0, 6}, Phase::forward) == doctest::Approx(12));
  }

  TEST_CASE("modules without measured times do not change") {
    Case in;
    const HardwareProfile plain = *find_profile("cpu-core-roofline");
    const ChunkContext context =
        chunk_context(in.scenario.model, ModuleId(2), 0, {}, NumberFormat::fp32);
    CHECK(range_time(in.scenario.model.modules[2], {0, 8}, Phase::backward, kWork, context, {},
                     in.profile) == range_time(in.scenario.model.modules[2], {0, 8},
                                               Phase::backward, kWork, context, {}, plain));
  }
}

}  // namespace polyphony
