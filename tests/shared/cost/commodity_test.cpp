// Additional attention costs of unfused stacks, and tensor parallelism over accelerators that
// NVLink connects in pairs only.
#include <doctest/doctest.h>

#include "shared/check/check.h"
#include "shared/cost/compute_time.h"
#include "shared/graph/compile.h"
#include "shared/hardware/devices.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/round_machine.h"

namespace polyphony {
namespace {

Module encoder(ModuleKind kind, int layers, int hidden, int heads) {
  Module module;
  module.kind = kind;
  module.layers = layers;
  module.hidden = hidden;
  module.heads = module.kv_heads = heads;
  module.head_dim = hidden / heads;
  module.ffn = 4 * hidden;
  module.norm = Norm::layer;
  module.gated = false;
  return module;
}

WorkSize sequences(std::int64_t count, std::int64_t rows) {
  return {
      .tokens = count * rows, .pairs = count * rows * rows, .sequences = static_cast<int>(count)};
}

Cluster a40_pairs() {
  const ShippedDevice& a40 = *find_device("A40");
  Cluster cluster;
  cluster.device = a40.device;
  cluster.nodes = 6;
  cluster.ranks_per_node = 4;
  cluster.node_link = {BytesPerSecond(56.25e9), Seconds(1e-6)};
  cluster.domain = 2;
  cluster.bus = {BytesPerSecond(31.5e9), Seconds(2e-6)};
  cluster.nics = 1;
  cluster.fabric_link = {BytesPerSecond(25e9), Seconds(5e-6)};
  return cluster;
}

// Seconds of a forward of all blocks over the first `tp` ranks of a node.
double forward(const Module& module, const WorkSize& size, int tp) {
  HardwareProfile profile = *find_profile("a40-roofline");
  profile.stack = *find_stack("hf-eager");
  std::vector<Rank> members;
  for (int r = 0; r < tp; ++r) members.emplace_back(static_cast<std::size_t>(r));
  const Ring ring = make_ring(members, a40_pairs(), profile, Others::alike);
  const LayerRange blocks{1, static_cast<std::uint16_t>(module.layers + 1)};
  return range_time(module, blocks, Phase::forward, size,
                    {.tp = tp, .precision = NumberFormat::bf16}, {ring, {}, {}}, profile)
      .count();
}

}  // namespace

TEST_CASE("the backward attention kernel has its own rate, recomputation the forward rate") {
  HardwareProfile profile = examples::plain();
  profile.device.memory_rate = BytesPerSecond(1e30);
  Module module = encoder(ModuleKind::audio, 2, 128, 2);
  const WorkSize size = sequences(1, 1000);
  ChunkContext context{.recompute = Recompute::full, .precision = NumberFormat::bf16};
  const auto time = [&](Phase phase) {
    return range_time(module, {1, 2}, phase, size, context, {}, profile).count();
  };
  const double forward_before = time(Phase::forward), before = time(Phase::backward);
  // 8 · 1e6 pairs · 128 flops at 1e13 a second: 102.4 us; a hundredth of the peak: 100 times that.
  profile.stack.narrow_attention_backward = 0.01;
  CHECK(time(Phase::forward) == doctest::Approx(forward_before));
  CHECK(time(Phase::backward) - before == doctest::Approx(99 * 102.4e-6));
  // One head of 128 is a wide one.
  module.heads = module.kv_heads = 1;
  module.head_dim = 128;
  CHECK(time(Phase::backward) == doctest::Approx(before));
  profile.stack.wide_attention_backward = 0.001;
  CHECK(time(Phase::backward) - before == doctest::Approx(999 * 102.4e-6));
}

TEST_CASE("with masked images, images attend to all rows of the microbatch, audio clips do not") {
  HardwareProfile profile = examples::plain();
  profile.device.memory_rate = BytesPerSecond(1e30);
  const auto time = [&](ModuleKind kind) {
    return range_time(encoder(kind, 2, 128, 2), {1, 2}, Phase::forward, sequences(4, 500),
                      {.precision = NumberFormat::bf16}, {}, profile)
        .count();
  };
  const double sound = time(ModuleKind::audio), sight = time(ModuleKind::vision);
  profile.stack.masked_images = true;
  CHECK(time(ModuleKind::audio) == doctest::Approx(sound));
  // 4 · (2000² - 4 · 500²) pairs · 128 flops at 1e13 a second.
  CHECK(time(ModuleKind::vision) - sight == doctest::Approx(4 * 3e6 * 128 / 1e13));
}

TEST_CASE("over NVLink pairs, TP4 is slower than TP2 if there is little compute per row") {
  // Cornstarch's profile of layers on A40s (cornstarch-org/Cornstarch, ff5d1ec), 4 samples: Whisper
  // large-v3 102 ms with TP2, 154 with TP4; SigLIP 2.56 and 3.45; Pixtral's image of 16,384 rows in
  // all, nearly all of it attention, 70.7 and 42.4.
  const Module whisper = encoder(ModuleKind::audio, 32, 1280, 20);
  CHECK(forward(whisper, sequences(4, 1500), 4) > forward(whisper, sequences(4, 1500), 2));
  const Module siglip = encoder(ModuleKind::vision, 1, 1152, 16);
  CHECK(forward(siglip, sequences(4, 729), 4) > forward(siglip, sequences(4, 729), 2));
  const Module pixtral = encoder(ModuleKind::vision, 1, 1024, 16);
  CHECK(forward(pixtral, sequences(4, 4096), 4) < forward(pixtral, sequences(4, 4096), 2));
}

TEST_CASE("a stage with blocking messages continues when its rows have arrived") {
  Scenario scenario = examples::small_on_cpu(2, 4);
  ModuleLayout grid;
  grid.pp = grid.ranks = 2;
  const Layout layout{
      .placement = Placement::homogeneous, .modules = {grid, grid, grid}, .microbatches = 4};
  REQUIRE_FALSE(check_layout(scenario, layout).has_value());
  // How many computations of the first stage wait for a send of it.
  const auto waiting = [&](const SoftwareStack& stack) {
    const Program program = lower(scenario, layout, make_plan(scenario, layout),
                                  typical_batch(scenario), StepKind::train, stack);
    REQUIRE(std::holds_alternative<Compiled>(compile(program)));
    int count = 0;
    for (std::uint32_t i = program.rank_ops[0].begin; i < program.rank_ops[0].end; ++i) {
      const Op& op = program.ops[i];
      if (!std::holds_alternative<Compute>(op.what)) continue;
      for (std::uint32_t w = op.waits_for.begin; w < op.waits_for.end; ++w) {
        const auto* exchange = std::get_if<Exchange>(&program.ops[program.waits[w].value].what);
        count += exchange != nullptr && exchange->sends;
      }
    }
    return count;
  };
  SoftwareStack stack;
  CHECK(waiting(stack) == 0);
  // Of 4 forwards each is sent before what is computed next.
  stack.blocking_messages = true;
  CHECK(waiting(stack) == 4);
}

}  // namespace polyphony
