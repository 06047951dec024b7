// Costs of messages, updates and hidden collectives, computed by hand (other kinds of overlap:
// tests/shared/cost/overlap_test.cpp).
//   Links of 1 GB/s at half their rate, 10 us a hop, no other latency: on two ranks an all-reduce
//   of S bytes takes 20 us + S / 0.5e9, a gather or scatter half.
#include <doctest/doctest.h>

#include <algorithm>

#include "shared/check/check.h"
#include "shared/cost/cost_model.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/hand_made.h"

namespace polyphony {
namespace {

HardwareProfile round_profile() {
  HardwareProfile profile;
  profile.device = {"round", FlopsPerSecond(1e12), {},
                    {},      BytesPerSecond(10e9), Bytes(std::int64_t{1} << 40)};
  profile.gemm_efficiency = profile.attention_efficiency = 1;
  profile.memory_efficiency = 0.5;
  profile.op_overhead = Seconds(30e-6);
  profile.message_latency = Seconds(7e-6);
  profile.message_efficiency = profile.collective_efficiency = profile.fabric_efficiency = 0.5;
  profile.collective_latency = Seconds(10e-6);
  profile.optimizer_overhead = Seconds(1e-3);
  profile.optimizer_bytes_efficiency = 0.25;
  return profile;
}

Scenario text_only(int nodes, int ranks_per_node) {
  Scenario scenario = examples::small_on_cpu(nodes * ranks_per_node, 8);
  scenario.model = {{scenario.model.modules[2]}, {}};
  scenario.data.source =
      SyntheticData{examples::always(0), examples::always(32), examples::always(4)};
  scenario.cluster.nodes = nodes;
  scenario.cluster.ranks_per_node = ranks_per_node;
  scenario.cluster.node_link = scenario.cluster.fabric_link = {BytesPerSecond(1e9), Seconds(0)};
  return scenario;
}

Layout grid_of(int tp, int pp, int ranks, Shard shard = Shard::none) {
  ModuleLayout grid;
  grid.tp = tp;
  grid.pp = pp;
  grid.ranks = ranks;
  grid.shard = shard;
  return {.placement = Placement::homogeneous, .modules = {grid}, .microbatches = 2};
}

struct Lowered {
  Scenario scenario;
  Program program;
  Compiled compiled;
  CostTable price(const HardwareProfile& profile) const {
    return polyphony::price(program, compiled, scenario.cluster, profile);
  }
};
Lowered lowered(const Scenario& scenario, const Layout& layout) {
  REQUIRE_FALSE(check_layout(scenario, layout).has_value());
  Lowered result{scenario, {}, {}};
  result.program = lower(scenario, layout, make_plan(scenario, layout), typical_batch(scenario));
  result.compiled = std::get<Compiled>(compile(result.program));
  return result;
}

double gather_of(double bytes) { return 10e-6 + bytes / 1e9; }  // or scatter, two ranks

}  // namespace

TEST_CASE("compute hides a collective at the end of the step, except for one tenth") {
  for (const bool between : {false, true}) {
    const Lowered step = lowered(between ? text_only(2, 1) : text_only(1, 2), grid_of(1, 1, 2));
    HardwareProfile profile = round_profile();
    const CostTable alone = step.price(profile);
    double backward = 0;  // of the rank's last
    for (std::size_t n = 0; n < step.compiled.nodes.size(); ++n) {
      const Node& node = step.compiled.nodes[n];
      const Op& op = step.program.ops[node.what];
      if (node.kind != NodeKind::compute || step.program.rank_of(op) != Rank(0)) continue;
      if (const auto* compute = std::get_if<Compute>(&op.what))
        if (compute->phase == Phase::backward) backward = alone.nodes[n].duration.count();
    }
    REQUIRE(backward > 0);
    const auto tail = [&](const CostTable& costs) {
      for (std::size_t n = 0; n < step.compiled.nodes.size(); ++n) {
        if (step.compiled.nodes[n].kind != NodeKind::collective) continue;
        const auto& what = std::get<Collective>(step.program.ops[step.compiled.nodes[n].what].what);
        if (!what.params.valid()) continue;
        const NodeCost& cost = costs.nodes[n];
        return std::tuple(what.bytes.value, cost.delay.count(),
                          costs.flows[cost.flows.begin].bytes.value);
      }
      return std::tuple(std::int64_t{0}, 0.0, std::int64_t{0});
    };
    const auto [bytes, delay, flow] = tail(alone);
    REQUIRE(bytes > 0);
    CHECK(delay == doctest::Approx(20e-6));
    CHECK(flow == 2 * bytes);
    const double time = 20e-6 + static_cast<double>(bytes) / 0.5e9;
    const double taken = between ? 0.1 : 0.2;
    profile.stack.taken_inside = 0.2;
    profile.stack.taken_between = 0.1;
    // The collective is longer than the compute: the compute overlaps with it for its duration at
    // 1 − taken of the device's rate, and takes longer by the time that it lost.
    profile.stack.overlap = 0.25 * time / backward;
    const double hidden = 0.25 * time / (1 - taken);
    const auto [bytes2, delay2, flow2] = tail(step.price(profile));
    CHECK(delay2 == doctest::Approx(20e-6 * (1 - hidden / time) + taken * hidden));
    CHECK(double(flow2) ==
          doctest::Approx(2.0 * double(bytes) * (1 - hidden / time)).epsilon(1e-4));
    // Shorter: all but a tenth, all of what it took.
    profile.stack.overlap = 100 * time / backward;
    const auto [bytes3, delay3, flow3] = tail(step.price(profile));
    CHECK(delay3 == doctest::Approx(2e-6 + taken * time));
    CHECK(double(flow3) == doctest::Approx(0.2 * double(bytes)).epsilon(1e-4));
  }
}

TEST_CASE(
    "scattered messages: a part to each, gathered there; parts already under sequence "
    "parallelism") {
  Scenario scenario = text_only(1, 4);
  scenario.cluster.node_link.latency = Seconds(1e-6);
  Layout layout = grid_of(2, 2, 4);
  HardwareProfile profile = round_profile();
  for (const bool sp : {false, true})
    for (const bool scattered : {false, true}) {
      layout.modules[0].sp = sp;
      profile.stack.scattered_messages = scattered;
      const Lowered step = lowered(scenario, layout);
      const CostTable costs = step.price(profile);
      int messages = 0;
      for (std::size_t n = 0; n < step.compiled.nodes.size(); ++n) {
        if (step.compiled.nodes[n].kind != NodeKind::message) continue;
        ++messages;
        const Message& message = step.program.messages[step.compiled.nodes[n].what];
        const NodeCost& cost = costs.nodes[n];
        // With sequence parallelism parts are all that there is. 11 us a hop.
        const bool parts = scattered && !sp;
        const double gather =
            parts ? 1e-6 + gather_of(static_cast<double>(message.bytes.value)) : 0;
        CHECK(cost.delay.count() == doctest::Approx(8e-6 + gather));
        CHECK(costs.flows[cost.flows.begin].bytes.value == message.bytes.value * (parts ? 1 : 2));
      }
      CHECK(messages > 0);
    }
}

TEST_CASE("an update moves the rank's shard of the optimizer state") {
  for (const Shard shard : {Shard::none, Shard::optimizer}) {
    const Lowered step = lowered(text_only(1, 2), grid_of(1, 1, 2, shard));
    const CostTable costs = step.price(round_profile());
    // Embedding and head 2·512·96; 6 blocks of 96·(96·2 + 2·48) + 3·96·256 and two norms; a norm.
    const double parameters =
        2 * 512 * 96 + 6 * (96 * (96 * 2 + 2 * 48) + 3 * 96 * 256 + 2 * 96) + 96;
    int updates = 0;
    for (std::size_t n = 0; n < step.compiled.nodes.size(); ++n) {
      const Node& node = step.compiled.nodes[n];
      if (node.kind != NodeKind::compute ||
          !std::holds_alternative<Update>(step.program.ops[node.what].what))
        continue;
      ++updates;
      // 36 bytes a parameter at a quarter of 10e9 B/s.
      CHECK(costs.nodes[n].duration.count() ==
            doctest::Approx(1e-3 + 36 * parameters / (shard == Shard::none ? 1 : 2) / 2.5e9));
    }
    CHECK(updates == 2);
  }
}

TEST_CASE("an op that several ranks run together takes as long as on the slowest rank") {
  // 32 tokens in two equal runs: the first has 136 query-key pairs, the second 392 and all labels.
  Layout layout = grid_of(1, 1, 2);
  layout.modules.front().cp = 2;
  layout.microbatches = 8;  // a sample each
  const Lowered step = lowered(text_only(1, 2), layout);
  HardwareProfile profile = round_profile();
  profile.attention_efficiency = 1e-4;
  const CostTable costs = step.price(profile);
  int together = 0;
  const Range ops = step.program.ops_of(Rank(1));
  for (std::uint32_t op = ops.begin; op < ops.end; ++op) {
    if (!std::holds_alternative<Compute>(step.program.ops[op].what)) continue;
    const std::uint32_t node = step.compiled.op_start[op];
    const OpId first(step.compiled.nodes[node].what);
    REQUIRE(step.program.rank_of(step.program.ops[first.value]) == Rank(0));
    const Seconds longer = compute_time(step.program, OpId(op), step.scenario.cluster, profile);
    CHECK(longer > compute_time(step.program, first, step.scenario.cluster, profile));
    CHECK(costs.nodes[node].duration == longer);
    ++together;
  }
  CHECK(together == 16);  // F and B
}

TEST_CASE("a message inside one rank is read and written once and crosses no link") {
  const Program program = hand_made::local_bridge();
  const Compiled compiled = hand_made::compile_sound(program);
  Cluster cluster;
  cluster.node_link = cluster.fabric_link = {BytesPerSecond(1), Seconds(1)};
  const CostTable costs = price(program, compiled, cluster, round_profile());
  int messages = 0;
  for (std::size_t n = 0; n < compiled.nodes.size(); ++n) {
    if (compiled.nodes[n].kind != NodeKind::message) continue;
    ++messages;
    const double bytes = static_cast<double>(program.messages[compiled.nodes[n].what].bytes.value);
    CHECK(costs.nodes[n].delay.count() == doctest::Approx(2 * bytes / 5e9));
    CHECK(costs.nodes[n].flows.size() == 0);
  }
  CHECK(messages == 2);
}

}  // namespace polyphony
