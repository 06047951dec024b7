// Overlap of collectives and compute, in closed form: reductions with the last backward pass,
// gathers with the next forward pass, collectives that slow down compute, messages sent in parts,
// rows that are sent to experts once.
#include <doctest/doctest.h>

#include "shared/check/check.h"
#include "shared/cost/cost_model.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {
namespace {

// 1 TFLOP/s, 1 GB/s; NVLink 1 MB/s and 1 us, so that collectives take longer than the overlapping
// compute.
HardwareProfile round_numbers() {
  HardwareProfile profile;
  profile.device = {"round", FlopsPerSecond(1e12), FlopsPerSecond(10e12),
                    {},      BytesPerSecond(1e9),  Bytes(1 << 30)};
  profile.gemm_efficiency = profile.attention_efficiency = profile.memory_efficiency = 1;
  profile.collective_efficiency = profile.message_efficiency = profile.fabric_efficiency = 1;
  return profile;
}
constexpr double kRate = 1e6, kLatency = 1e-6;

struct Priced {
  Scenario scenario;
  Program program;
  Compiled compiled;
  CostTable costs;
};
Priced priced(int tp, int pp, int ranks, Shard shard, const HardwareProfile& profile) {
  Priced result{examples::small_on_cpu(ranks, ranks / tp / pp), {}, {}, {}};
  result.scenario.cluster.node_link = {BytesPerSecond(kRate), Seconds(kLatency)};
  ModuleLayout grid;
  grid.tp = tp;
  grid.pp = pp;
  grid.ranks = ranks;
  grid.shard = shard;
  const Layout layout{
      .placement = Placement::homogeneous, .modules = {grid, grid, grid}, .microbatches = 1};
  REQUIRE_FALSE(check_layout(result.scenario, layout).has_value());
  result.program = lower(result.scenario, layout, make_plan(result.scenario, layout),
                         typical_batch(result.scenario));
  result.compiled = std::get<Compiled>(compile(result.program));
  result.costs = price(result.program, result.compiled, result.scenario.cluster, profile);
  return result;
}

// The time of the one op of a phase that runs a parameter group's layers.
double overlapping_time(const Priced& step, const ParamGroup& params, Phase phase,
                        const HardwareProfile& profile) {
  const Range ops = step.program.rank_ops[params.rank.value];
  for (std::uint32_t i = ops.begin; i < ops.end; ++i) {
    const auto* compute = std::get_if<Compute>(&step.program.ops[i].what);
    if (compute && compute->phase == phase && compute->module == params.module &&
        compute->layers == params.layers)
      return compute_time(step.program, OpId(i), step.scenario.cluster, profile).count();
  }
  FAIL("no such op");
  return 0;
}

// Checks every collective of a purpose: its time `alone`, minus `overlap` of the overlapping
// compute.
int check_exposed(const Priced& step, Purpose purpose, Phase phase, double alone_per_byte, int hops,
                  double overlap, const HardwareProfile& profile) {
  int found = 0;
  for (std::uint32_t n = 0; n < step.compiled.nodes.size(); ++n) {
    const Node& node = step.compiled.nodes[n];
    if (node.kind != NodeKind::collective) continue;
    const auto& collective = std::get<Collective>(step.program.ops[node.what].what);
    if (collective.purpose != purpose) continue;
    ++found;
    const double alone =
        hops * kLatency + alone_per_byte * static_cast<double>(collective.bytes.value) / kRate;
    const ParamGroup& params = step.program.params[collective.params.value];
    const double compute = overlapping_time(step, params, phase, profile);
    REQUIRE(alone > compute);
    CHECK(unshared_time(step.costs, n).count() ==
          doctest::Approx(std::max(0.1 * alone, alone - overlap * compute)).epsilon(1e-4));
  }
  return found;
}

}  // namespace

TEST_CASE("gradient reductions overlap with the backward pass, except for the last bucket") {
  HardwareProfile profile = round_numbers();
  // Two ranks: an all-reduce moves 2·1/2 of the array over each edge after 2 hops.
  for (const double overlap : {0.0, 0.5, 1.0, 1e9}) {
    profile.stack.overlap = overlap;
    const Priced step = priced(1, 1, 2, Shard::none, profile);
    CHECK(check_exposed(step, Purpose::gradients, Phase::backward, 1.0, 2, overlap, profile) >= 3);
  }
}

TEST_CASE("gathers of sharded parameters overlap with the next forward pass") {
  HardwareProfile profile = round_numbers();
  // Half of the array after one hop; gradients scattered likewise.
  for (const double overlap : {0.0, 0.5, 1.0}) {
    profile.stack.overlap = overlap;
    const Priced step = priced(1, 1, 2, Shard::optimizer, profile);
    CHECK(check_exposed(step, Purpose::parameters, Phase::forward, 0.5, 1, overlap, profile) >= 3);
    CHECK(check_exposed(step, Purpose::gradients, Phase::backward, 0.5, 1, overlap, profile) >= 3);
  }
}

TEST_CASE("gathers and scatters slow down the compute that they overlap with") {
  HardwareProfile profile = round_numbers();
  const Priced alone = priced(1, 1, 2, Shard::full, profile);
  profile.stack.taken_inside = 0.25;
  const CostTable costs = price(alone.program, alone.compiled, alone.scenario.cluster, profile);
  int forwards = 0, backwards = 0;
  for (std::uint32_t n = 0; n < alone.compiled.nodes.size(); ++n) {
    const Node& node = alone.compiled.nodes[n];
    if (node.kind != NodeKind::compute) continue;
    const auto* compute = std::get_if<Compute>(&alone.program.ops[node.what].what);
    if (compute == nullptr) continue;
    const ParamGroup& params = alone.program.params[compute->params.value];
    // fp32: half of 4 bytes an element over each edge, after one hop; twice in a backward.
    const double moved = kLatency + 2.0 * static_cast<double>(params.elements) / kRate;
    const bool forward = compute->phase == Phase::forward;
    ++(forward ? forwards : backwards);
    const double time = alone.costs.nodes[n].duration.count();
    // At three quarters of its rate while they run, and no longer than it lasts then.
    CHECK(costs.nodes[n].duration.count() ==
          doctest::Approx(time + 0.25 * std::min(time / 0.75, forward ? moved : 2 * moved)));
  }
  CHECK(forwards >= 10);
  CHECK(backwards >= 10);
}

TEST_CASE("stages send parts of the rows to tensor-parallel ranks, which gather them") {
  HardwareProfile profile = round_numbers();
  const Priced whole = priced(2, 2, 4, Shard::none, profile);
  profile.stack.scattered_messages = true;
  const CostTable parts = price(whole.program, whole.compiled, whole.scenario.cluster, profile);
  int messages = 0;
  for (std::uint32_t n = 0; n < whole.compiled.nodes.size(); ++n) {
    if (whole.compiled.nodes[n].kind != NodeKind::message) continue;
    ++messages;
    const double bytes =
        static_cast<double>(whole.program.messages[whole.compiled.nodes[n].what].bytes.value);
    CHECK(unshared_time(whole.costs, n).count() == doctest::Approx(kLatency + bytes / kRate));
    // Half of it, then one hop and the other half.
    CHECK(unshared_time(parts, n).count() == doctest::Approx(2 * kLatency + bytes / kRate));
    CHECK(parts.nodes[n].delay.count() == doctest::Approx(2 * kLatency + bytes / 2 / kRate));
  }
  CHECK(messages == 4);  // two ranks, there and back
}

TEST_CASE("a row is sent once to a rank that has several of its experts") {
  // 4 experts on 2 places, 2 choices: both elsewhere in 2/4 · 1/3 of the cases, so that a row goes
  // to 2 · 5/6 places instead of 2.
  CHECK(distinct_share(2, {2, 4}) == doctest::Approx(5.0 / 6));
  CHECK(distinct_share(4, {2, 4}) == doctest::Approx(1));
  CHECK(distinct_share(1, {2, 4}) == doctest::Approx(0.5));
  CHECK(distinct_share(8, {}) == 1);
  Cluster cluster;
  cluster.nodes = 2;
  cluster.ranks_per_node = 2;
  cluster.node_link = {BytesPerSecond(1e9), Seconds(0)};
  cluster.fabric_link = {BytesPerSecond(1e6), Seconds(0)};
  const HardwareProfile profile = round_numbers();
  const std::vector<Rank> all{Rank(0), Rank(1), Rank(2), Rank(3)};
  // Of 4 MB, 2 MB leave the node: 2 s at 1 MB/s. Once to the other node: 5/6 of that.
  CHECK(ring_time(make_ring(all, cluster, profile), CollectiveKind::all_to_all, Bytes(4'000'000))
            .count() == doctest::Approx(2));
  CHECK(ring_time(make_ring(all, cluster, profile, Others::idle, {2, 4}),
                  CollectiveKind::all_to_all, Bytes(4'000'000))
            .count() == doctest::Approx(2 * 5.0 / 6));
}

}  // namespace polyphony
