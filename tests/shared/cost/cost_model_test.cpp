#include "shared/cost/cost_model.h"

#include <doctest/doctest.h>

#include "shared/check/check.h"
#include "shared/lower/lower.h"
#include "shared/program/expand_op.h"
#include "shared/scenario/typical_batch.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/round_machine.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {
namespace {

std::vector<Rank> ranks(int first, int count, int stride) {
  std::vector<Rank> members;
  for (int i = 0; i < count; ++i)
    members.emplace_back(static_cast<std::size_t>(first + i * stride));
  return members;
}

HardwareProfile round_numbers() {
  HardwareProfile profile;
  profile.device = {"round", FlopsPerSecond(1e12), FlopsPerSecond(10e12),
                    {},      BytesPerSecond(1e9),  Bytes(1 << 30)};
  profile.memory_efficiency = 0.5;
  profile.message_latency = Seconds(10e-6);
  profile.message_efficiency = 0.8;
  profile.collective_latency = Seconds(2e-6);
  profile.collective_efficiency = 0.5;
  profile.fabric_efficiency = 0.4;
  profile.optimizer_overhead = Seconds(1e-3);
  profile.optimizer_bytes_efficiency = 0.25;
  return profile;
}

struct Priced {
  Program program;
  Compiled compiled;
  CostTable costs;
};
Priced priced(const Scenario& scenario, const Layout& layout, const HardwareProfile& profile) {
  REQUIRE_FALSE(check_layout(scenario, layout).has_value());
  Priced result;
  result.program = lower(scenario, layout, make_plan(scenario, layout), typical_batch(scenario));
  result.compiled = std::get<Compiled>(compile(result.program));
  result.costs = price(result.program, result.compiled, scenario.cluster, profile);
  return result;
}

Layout one_grid(int tp, int pp, int all, int microbatches) {
  ModuleLayout grid;
  grid.tp = tp;
  grid.pp = pp;
  grid.ranks = all;
  return {.placement = Placement::homogeneous,
          .modules = {grid, grid, grid},
          .microbatches = microbatches};
}

}  // namespace

TEST_CASE(
    "a ring all-reduce takes 2(n-1) hops and moves 2(n-1)/n of the array over its slowest edge") {
  const Cluster cluster = examples::two_nodes();
  const HardwareProfile profile = round_numbers();
  // 4 ranks of one node, 8 MB: 6 hops of 3 us; 2·3/4·8e6 = 12e6 bytes at 50e9 B/s = 240 us.
  const Ring inside = make_ring(ranks(0, 4, 1), cluster, profile);
  CHECK(ring_time(inside, CollectiveKind::all_reduce, Bytes(8'000'000)).count() ==
        doctest::Approx(258e-6));
  CHECK(ring_time(inside, CollectiveKind::all_gather, Bytes(8'000'000)).count() ==
        doctest::Approx(129e-6));
  CHECK(ring_time(inside, CollectiveKind::reduce_scatter, Bytes(8'000'000)).count() ==
        doctest::Approx(129e-6));
  // All 8: four rings leave each node, one through each NIC of 4e9 B/s: 14 hops of 7 us and
  // 2·7/8·8e6 = 14e6 bytes at 16e9 B/s: 98 us + 875 us.
  const Ring across = make_ring(ranks(0, 8, 1), cluster, profile);
  CHECK(ring_time(across, CollectiveKind::all_reduce, Bytes(8'000'000)).count() ==
        doctest::Approx(973e-6));
  // One rank of each node: its own NIC. 2 hops of 7 us, 8e6 bytes at 4e9 B/s.
  CHECK(ring_time(make_ring(ranks(0, 2, 4), cluster, profile), CollectiveKind::all_reduce,
                  Bytes(8'000'000))
            .count() == doctest::Approx(2.014e-3));
  // All-to-all: of the 7e6 bytes that a rank sends, 4e6 leave the node through its NIC at 4e9 B/s:
  // 1 ms; 7 hops of 7 us.
  CHECK(ring_time(across, CollectiveKind::all_to_all, Bytes(8'000'000)).count() ==
        doctest::Approx(1.049e-3));
  CHECK(ring_time(make_ring(ranks(3, 1, 1), cluster, profile), CollectiveKind::all_reduce, Bytes(8))
            .count() == 0);
}

TEST_CASE("the cost of a layer range is that of its expanded kernels and collectives") {
  const Scenario scenario = examples::vlm_on_h100();
  HardwareProfile profile = *shipped_profile(scenario.cluster);
  profile.stack.tensor_overlap = 0;  // one after the other
  const Ring ring = make_ring(ranks(0, 8, 1), scenario.cluster, profile);
  const WorkSize size{
      .tokens = 4096, .pairs = 8'390'656, .text_tokens = 3000, .loss_tokens = 2000, .sequences = 1};
  const ChunkContext context{.tp = 8, .precision = NumberFormat::bf16};
  const Module& language = scenario.model.modules[2];
  const LayerRange all{0, 82};
  for (const Phase phase :
       {Phase::forward, Phase::backward, Phase::backward_input, Phase::backward_weight}) {
    const Expansion inside = expand(language, all, phase, size, context);
    Seconds expected{};
    for (const Kernel& kernel : inside.kernels)
      expected += kernel_time(profile, kernel, NumberFormat::bf16);
    for (const InnerCollective& collective : inside.collectives) {
      expected += ring_time(ring, collective.kind, collective.bytes);
    }
    CHECK(range_time(language, all, phase, size, context, {ring, {}, {}}, profile).count() ==
          doctest::Approx(expected.count()).epsilon(1e-12));
  }
}

TEST_CASE("a large block runs at the stated efficiency") {
  // Microbatch of 8192 tokens on one H100, no tensor parallelism: products reach
  // 0.66·s/(s+277), 62 % of 989 TFLOP/s and more, with s from 5161 (k and v are one product with
  // q: 8192 × 10240 × 8192, s = 8825) up; memory-bound work adds less than a quarter. Between 50
  // and 66 % of the peak.
  const HardwareProfile profile = *find_profile("h100-roofline");
  const WorkSize size{.tokens = 8192,
                      .pairs = 33'558'528,
                      .text_tokens = 8192,
                      .loss_tokens = 8192,
                      .sequences = 1};
  const ChunkContext context{.precision = NumberFormat::bf16};
  const Module language = examples::llama_70b();
  const Flops flops = total_flops(expand(language, {1, 2}, Phase::forward, size, context));
  const Seconds time = range_time(language, {1, 2}, Phase::forward, size, context, {}, profile);
  const double reached = flops.value / time.count() / 989e12;
  CHECK(reached > 0.5);
  CHECK(reached < 0.66);
}

TEST_CASE("corrections scale the kernels of their layer and phase") {
  const Module language = examples::llama_70b();
  const WorkSize size{
      .tokens = 64, .pairs = 2080, .text_tokens = 64, .loss_tokens = 64, .sequences = 1};
  HardwareProfile profile = round_numbers();
  const auto time = [&](Phase phase) {
    return range_time(language, {1, 3}, phase, size, {}, {}, profile).count();
  };
  const double forward = time(Phase::forward), backward = time(Phase::backward);
  profile.corrections[{LayerKind::decoder_block, Phase::forward}] = 1.5;
  profile.corrections[{LayerKind::language_head, Phase::backward}] = 9;
  CHECK(time(Phase::forward) == doctest::Approx(1.5 * forward));
  CHECK(time(Phase::backward) == backward);
}

TEST_CASE("price: messages, gradient rings and updates of a lowered step") {
  Scenario scenario = examples::small_on_cpu(4, 8);
  const Cluster cluster = examples::two_nodes();
  scenario.cluster.nodes = cluster.nodes;
  scenario.cluster.ranks_per_node = 2;  // ranks 0, 1 | 2, 3
  scenario.cluster.node_link = cluster.node_link;
  scenario.cluster.fabric_link = cluster.fabric_link;
  const HardwareProfile profile = round_numbers();
  // dp 2 × pp 2: stages are ranks {0, 1} and {2, 3}, so boundaries cross nodes and gradient rings
  // do not.
  const Priced step = priced(scenario, one_grid(1, 2, 4, 2), profile);
  int messages = 0, rings = 0, updates = 0;
  for (std::size_t n = 0; n < step.compiled.nodes.size(); ++n) {
    const Node& node = step.compiled.nodes[n];
    const NodeCost& cost = step.costs.nodes[n];
    if (node.kind == NodeKind::message) {
      ++messages;
      const Message& message = step.program.messages[node.what];
      CHECK(cost.delay.count() == doctest::Approx(15e-6));  // 10 us and the fabric's 5
      REQUIRE(cost.flows.size() == 1);
      // Fabric efficiency 0.4: 2.5 times the bytes.
      CHECK(step.costs.flows[cost.flows.begin].bytes.value ==
            doctest::Approx(2.5 * double(message.bytes.value)).epsilon(1e-3));
    }
    if (node.kind == NodeKind::collective) {
      const auto& collective = std::get<Collective>(step.program.ops[node.what].what);
      if (!collective.params.valid()) continue;
      ++rings;
      CHECK(cost.flows.size() == 2);
      CHECK(cost.delay.count() == doctest::Approx(2 * 3e-6));
      // 2(n-1)/n = 1; collective efficiency 0.5: twice the bytes on each edge.
      CHECK(step.costs.flows[cost.flows.begin].bytes.value == 2 * collective.bytes.value);
    }
    if (node.kind == NodeKind::compute &&
        std::holds_alternative<Update>(step.program.ops[node.what].what)) {
      ++updates;
      const auto& update = std::get<Update>(step.program.ops[node.what].what);
      std::int64_t bytes = 0;
      for (std::uint32_t p = update.params.begin; p < update.params.end; ++p)
        bytes += step.program.params[p].bytes.value;
      // fp32: 9 passes over the parameters, at a quarter of 1e9 B/s.
      CHECK(cost.duration.count() == doctest::Approx(1e-3 + 9.0 * double(bytes) / 0.25e9));
    }
  }
  CHECK(messages == 2 * 2 * 2);  // 2 lanes × 2 microbatches, there and back
  CHECK(rings >= 2);
  CHECK(updates == 4);
}

TEST_CASE("price: in a mesh a message and the ring of two ranks have one link") {
  Scenario scenario = examples::small_on_cpu(4, 8);
  scenario.cluster.nodes = 1;
  scenario.cluster.ranks_per_node = 4;
  scenario.cluster.node_link = examples::two_nodes().node_link;
  scenario.cluster.peer_link = scenario.cluster.node_link.rate / 4;
  const HardwareProfile profile = round_numbers();
  const Priced step = priced(scenario, one_grid(1, 2, 4, 2), profile);
  const Ring ring = make_ring(ranks(0, 2, 1), scenario.cluster, profile);
  CHECK(ring.links == 0.25);
  int messages = 0, rings = 0;
  for (std::size_t n = 0; n < step.compiled.nodes.size(); ++n) {
    const Node& node = step.compiled.nodes[n];
    const NodeCost& cost = step.costs.nodes[n];
    if (node.kind == NodeKind::message) {
      ++messages;
      // Message efficiency 0.8, a quarter of the link: five times the bytes.
      CHECK(step.costs.flows[cost.flows.begin].bytes.value ==
            5 * step.program.messages[node.what].bytes.value);
    }
    if (node.kind == NodeKind::collective) {
      const auto& collective = std::get<Collective>(step.program.ops[node.what].what);
      if (!collective.params.valid()) continue;
      ++rings;
      // 2(n-1)/n = 1; collective efficiency 0.5, a quarter of the link: eight times the bytes.
      CHECK(step.costs.flows[cost.flows.begin].bytes.value == 8 * collective.bytes.value);
      CHECK(unshared_time(step.costs, static_cast<std::uint32_t>(n)).count() ==
            doctest::Approx(ring_time(ring, collective.kind, collective.bytes).count()));
    }
  }
  CHECK(messages == 2 * 2 * 2);
  CHECK(rings >= 2);
}

TEST_CASE("price: tensor-parallel ops include their inner rings, equal ops cost the same") {
  const Scenario scenario = examples::small_on_cpu(2, 4);
  HardwareProfile profile = *shipped_profile(scenario.cluster);
  const Priced step = priced(scenario, one_grid(2, 1, 2, 4), profile);
  HardwareProfile faster = profile;
  faster.collective_latency = profile.collective_latency / 2;
  const CostTable cheaper = price(step.program, step.compiled, scenario.cluster, faster);
  for (std::size_t n = 0; n < step.compiled.nodes.size(); ++n) {
    const Node& node = step.compiled.nodes[n];
    if (node.kind != NodeKind::compute) continue;
    const Op& op = step.program.ops[node.what];
    if (!std::holds_alternative<Compute>(op.what)) continue;
    CHECK(step.costs.nodes[n].duration ==
          compute_time(step.program, OpId(node.what), scenario.cluster, profile));
    // Half a hop of 100 us less, two hops per collective.
    const auto collectives =
        static_cast<double>(expand(step.program, OpId(node.what)).collectives.size());
    CHECK((step.costs.nodes[n].duration - cheaper.nodes[n].duration).count() ==
          doctest::Approx(collectives * 2 * 50e-6));
  }
}

TEST_CASE("price: microbatches that differ in one number have separate prices") {
  const Scenario scenario = test::scenario_at("scenarios/tiny_all.json");
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  Priced step = priced(scenario, *scenario.layout, profile);
  for (std::size_t k = 0; k < step.program.sizes.size(); ++k)
    step.program.sizes[k].cross_pairs *= static_cast<std::int64_t>(1000 * k);
  const CostTable costs = price(step.program, step.compiled, scenario.cluster, profile);
  for (std::size_t n = 0; n < step.compiled.nodes.size(); ++n) {
    const OpId op(step.compiled.nodes[n].what);
    if (step.compiled.nodes[n].kind != NodeKind::compute) continue;
    CHECK(costs.nodes[n].duration == compute_time(step.program, op, scenario.cluster, profile));
  }
}

TEST_CASE("a Program priced by one profile after another costs what it costs by each alone") {
  const Scenario scenario = examples::small_on_cpu(4, 8);
  const HardwareProfile profile = round_numbers();
  const Priced step = priced(scenario, one_grid(2, 2, 4, 4), profile);
  Pricing pricing(step.program, step.compiled, scenario.cluster);
  for (const double factor : {1.0, 0.8, 1.3}) {
    HardwareProfile other = profile;
    other.gemm_efficiency *= factor;
    other.memory_efficiency /= factor;
    other.message_efficiency *= factor;
    const CostTable alone = price(step.program, step.compiled, scenario.cluster, other);
    const CostTable again = pricing.price(other);
    REQUIRE(again.nodes.size() == alone.nodes.size());
    CHECK(again.flows == alone.flows);
    for (std::size_t i = 0; i < alone.nodes.size(); ++i) {
      CHECK(again.nodes[i].duration == alone.nodes[i].duration);
      CHECK(again.nodes[i].delay == alone.nodes[i].delay);
    }
  }
}

}  // namespace polyphony
