// Jitter draws, intervals and differences against closed forms.
#include <doctest/doctest.h>

#include <cmath>

#include "shared/chance/belief.h"
#include "shared/chance/jitter.h"
#include "shared/cost/cost_model.h"
#include "shared/error.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"
#include "shared/statistics.h"
#include "tests/shared/support/hand_made.h"

using namespace polyphony;

namespace {

// Two compute nodes of 1 and 2 s, one after the other, on one stream.
struct StageChain {
  Compiled compiled;
  CostTable costs;
  StageChain() {
    compiled.nodes = {{NodeKind::compute, 0}, {NodeKind::compute, 1}};
    compiled.successor_begin = {0, 1, 1};
    compiled.successors = {1};
    compiled.predecessors = {0, 1};
    compiled.op_start = compiled.op_end = {0, 1};
    compiled.busy_begin = {0, 2};
    compiled.busy_nodes = {0, 1};
    costs.nodes = {{.duration = Seconds(1), .delay = {}, .flows = {}},
                   {.duration = Seconds(2), .delay = {}, .flows = {}}};
    costs.network.node_of = {0};
  }
};

struct Moments {
  double mean = 0, deviation = 0;
};
Moments moments(const std::vector<Seconds>& values) {
  Moments result;
  const auto n = static_cast<double>(values.size());
  for (const Seconds value : values) result.mean += value.count() / n;
  for (const Seconds value : values)
    result.deviation += (value.count() - result.mean) * (value.count() - result.mean) / (n - 1);
  result.deviation = std::sqrt(result.deviation);
  return result;
}

Jitter compute_jitter(double step, double op) {
  Jitter jitter;
  jitter.of[static_cast<std::size_t>(ActivityKind::compute)] = {step, op};
  return jitter;
}

HardwareProfile stated(double step_error, std::vector<ParameterError> errors) {
  HardwareProfile profile = *find_profile("h100-roofline");
  profile.step_error = step_error;
  profile.certainty = {};
  profile.certainty.errors = std::move(errors);
  return profile;
}

}  // namespace

// Single ops: √(1² + 2²)·0.01. Common to the step: (1 + 2)·0.01. A log-normal's mean exceeds its
// median by half its variance, 5e-5. 20,000 draws know a deviation to 0.5 %.
TEST_CASE("two ops in series vary according to their deviations") {
  const StageChain chain;
  const Moments single =
      moments(jittered_steps(chain.compiled, chain.costs, compute_jitter(0, 0.01), 7, 20000));
  CHECK(single.mean == doctest::Approx(3).epsilon(0.0005));
  CHECK(single.deviation == doctest::Approx(std::sqrt(5.0) * 0.01).epsilon(0.02));
  const Moments common =
      moments(jittered_steps(chain.compiled, chain.costs, compute_jitter(0.01, 0), 7, 20000));
  CHECK(common.deviation == doctest::Approx(0.03).epsilon(0.02));
}

TEST_CASE("a draw depends only on its seed, and leaves other kinds and the medians unchanged") {
  const StageChain chain;
  const Jitter jitter = compute_jitter(0.1, 0.2);
  const auto time = [&](std::uint64_t seed) {
    return estimate_step(chain.compiled, draw_jitter(chain.compiled, chain.costs, jitter, seed))
        .step();
  };
  CHECK(time(3) == time(3));
  CHECK(time(3) != time(4));
  const auto steps = jittered_steps(chain.compiled, chain.costs, jitter, 0, 4001);
  CHECK(steps[2000].count() == doctest::Approx(3).epsilon(0.02));
  Jitter messages;
  messages.of[static_cast<std::size_t>(ActivityKind::message)] = {0.5, 0.5};
  CHECK(jittered_steps(chain.compiled, chain.costs, messages, 0, 1)[0] == Seconds(3));
}

TEST_CASE("a message jitters in delay and bytes alike") {
  StageChain chain;
  chain.compiled.nodes[1].kind = NodeKind::message;
  chain.costs.nodes[1] = {.duration = {}, .delay = Seconds(1), .flows = {0, 1}};
  chain.costs.flows = {{Rank(0), Rank(1), Bytes(1'000'000)}};
  chain.costs.network = {{0, 0}, BytesPerSecond(1e6), BytesPerSecond(1e6)};
  Jitter jitter;
  jitter.of[static_cast<std::size_t>(ActivityKind::message)].op = 0.3;
  const CostTable drawn = draw_jitter(chain.compiled, chain.costs, jitter, 11);
  const double factor = drawn.nodes[1].delay.count();
  CHECK(factor != 1.0);
  CHECK(static_cast<double>(drawn.flows[0].bytes.value) == doctest::Approx(1e6 * factor));
  CHECK(drawn.nodes[0].duration == Seconds(1));
}

// Parameters explain 3 and 4 %: 5 %. The stated 20 % are 1.645 deviations of ln 1.2: the residual
// fills up the rest. Where the parameters explain more, they decide.
TEST_CASE("an interval is as wide as the profile states, or as its parameters imply") {
  const HardwareProfile profile = stated(0.2, {{{"dispatch", 0.1}}, {{"op_overhead", 0.1}}});
  const Belief belief = make_belief(Seconds(10), {0.03, -0.04}, profile);
  CHECK(belief.parameters() == doctest::Approx(0.05));
  CHECK(belief.deviation() == doctest::Approx(std::log(1.2) / kNormal90));
  CHECK(interval(belief).high.count() == doctest::Approx(12));
  CHECK(interval(belief).low.count() == doctest::Approx(10 / 1.2));
  const Belief wide = make_belief(Seconds(10), {0.3, 0.4}, profile);
  CHECK(wide.residual == 0);
  CHECK(wide.deviation() == doctest::Approx(0.5));
}

// Shared parameters cancel: 0.30 against 0.27 and 0.27 leaves 0.03 and 0.04 apart, so 0.05; the
// layouts' own part is 0.06 · √4 doublings = 0.12: 0.13 together. P(second wins) of two normals
// 0.13 apart is P(Z < -1).
TEST_CASE("P(A beats B) is that of two normal variables, and shared errors cancel") {
  HardwareProfile profile = stated(5, {{{"dispatch", 0.1}}, {{"op_overhead", 0.1}}});
  profile.certainty.layout_error = 0.06;
  const Belief a = make_belief(Seconds(10), {0.30, 0.10}, profile);
  const Belief b = make_belief(Seconds(10 * std::exp(0.13)), {0.27, 0.14}, profile);
  const Difference apart = compare_beliefs(a, b, {4, 0}, profile);
  CHECK(apart.deviation == doctest::Approx(0.13));
  CHECK(apart.second_wins == doctest::Approx(0.15865525).epsilon(1e-6));
  CHECK(apart.tied());
  CHECK(apart.seconds.high.count() == doctest::Approx(10 * std::expm1(0.13 + kNormal90 * 0.13)));
  // Equal but for parameters that they share: certain.
  const Difference same = compare_beliefs(a, a, {}, profile);
  CHECK(same.deviation == 0);
  // Unknown how much layouts share: independent residuals, at most.
  profile.certainty.layout_error.reset();
  const double independent = compare_beliefs(a, a, {4, 0}, profile).deviation;
  CHECK(independent == doctest::Approx(std::sqrt(2.0) * a.residual));
  profile.certainty.layout_error = 100;
  CHECK(compare_beliefs(a, a, {4, 0}, profile).deviation == doctest::Approx(independent));
  // 0.03² · 3 + 0.09² · 2 = 0.1374²: tensor parallelism has an error of its own.
  profile.certainty.layout_error = 0.03;
  profile.certainty.tensor_error = 0.09;
  CHECK(compare_beliefs(a, a, {3, 2}, profile).deviation == doctest::Approx(0.137477));
}

// Compute alone: an op of overhead o and kernels k; ln T moves by o / (o + k) per relative change
// of o. Moving both together by as much moves all of T.
TEST_CASE("an effect is the share of the step that a parameter determines") {
  const Program program = hand_made::pipeline({.stages = 1, .microbatches = 2});
  const Compiled compiled = hand_made::compile_sound(program);
  HardwareProfile profile = stated(0.2, {{{"op_overhead", 0.05}}});
  profile.op_overhead = Seconds(1e-3);
  profile.optimizer_overhead = Seconds(0);
  Cluster cluster;
  cluster.device = profile.device;
  const double step =
      estimate_step(compiled, price(program, compiled, cluster, profile)).step().count();
  const std::vector<double> effects = step_effects(program, compiled, cluster, profile);
  // Two microbatches, forward and backward: four ops of 1 ms overhead.
  CHECK(effects[0] == doctest::Approx(0.05 * 4e-3 / step).epsilon(0.001));
}

TEST_CASE("the distance of two layouts is the number of doublings between their grids") {
  Layout a;
  a.modules.resize(2);
  a.modules[0].ranks = a.modules[1].ranks = 8;
  a.microbatches = 4;
  Layout b = a;
  const auto distance = [](const Layout& x, const Layout& y) {
    const LayoutDistance apart = layout_distance(x, y);
    return std::pair(apart.other, apart.tensor);
  };
  CHECK(distance(a, b) == std::pair(0.0, 0.0));
  b.modules[1].tp = 4;  // 2 doublings, and dp 8 becomes 2: 2 more
  b.modules[0].tp = 2;  // 1 and 1: the other module differs more
  b.microbatches = 8;   // 1
  CHECK(distance(a, b) == std::pair(3.0, 2.0));
  b.schedule = ScheduleKind::gpipe;
  CHECK(distance(b, a) == std::pair(4.0, 2.0));
  b.modules[1].tp_pieces = 4;  // 1, however many
  CHECK(distance(b, a) == std::pair(5.0, 2.0));
}

// 0 of n: 1 - 0.05^(1/n), about 3/n. 1 of 10: Clopper and Pearson's table, 0.394. All of n: 1.
TEST_CASE("upper bounds of a probability") {
  CHECK(upper_probability(0, 1000) == doctest::Approx(0.0029913).epsilon(1e-4));
  CHECK(upper_probability(1, 10) == doctest::Approx(0.394).epsilon(0.002));
  CHECK(upper_probability(4, 4) == 1);
  CHECK(any_of(0.5, 2) == doctest::Approx(0.75));
  CHECK(any_of(1e-12, 1e6) == doctest::Approx(1e-6));
  CHECK(normal_below(0) == 0.5);
  CHECK(normal_below(kNormal90) == doctest::Approx(0.95));
}

TEST_CASE("a profile's certainty is restored from JSON, and invalid values are refused") {
  HardwareProfile profile = *find_profile("a100-80-roofline");
  profile.certainty.source = "here";
  profile.certainty.errors = {{{"gemm_efficiency", 0.05}},
                              {{"stack.host", -0.1}, {"corrections.decoder_block.forward", 0.3}}};
  profile.certainty.layout_error = 0.02;
  profile.certainty.tensor_error = 0.07;
  profile.certainty.residual = 0.05;
  profile.certainty.freedom = 5;
  profile.certainty.footing = Footing::foreign_borrowed;
  Layout measured;
  measured.placement = Placement::colocated;
  measured.schedule = ScheduleKind::interleaved;
  measured.microbatches = 8;
  measured.modules.resize(2);
  measured.modules[1].tp = measured.modules[1].vpp = 2;
  measured.modules[1].ranks = 4;
  measured.modules[1].sp = true;
  measured.modules[1].shard = Shard::optimizer;
  measured.modules[1].recompute = Recompute::full;
  measured.modules[1].cp_attention = ContextAttention::ring;
  measured.modules[1].shard_ranks = 2;
  measured.planner = Planning::dip;
  profile.certainty.misses = {
      {"run.log", "language 8030261248", measured, -0.1, 0.01, {0.02, -0.3}}};
  profile.certainty.fitted.gemm_size = {64, 4096.5};
  profile.certainty.fitted.message_bytes = {1000, 1 << 20};
  profile.certainty.jitter = Jitter{17, {{{0.01, 0.02}, {0.03, 0.04}, {0.05, 0.06}}}};
  CHECK(parse_profile(to_json(profile), "p.json") == profile);
  const auto refusal = [&](const std::string& certainty) {
    std::string text = to_json(profile);
    text.replace(text.find("\"certainty\""), std::string::npos,
                 "\"certainty\": " + certainty + "}");
    try {
      parse_profile(text, "p.json");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(refusal(R"({"errors": [{"gem_efficiency": 0.1}]})").find("gemm_efficiency") !=
        std::string::npos);
  CHECK(
      refusal(R"({"fitted": {"ranks": {"low": 8, "high": 2}}})").find("/certainty/fitted/ranks") !=
      std::string::npos);
  CHECK(refusal(R"({"jitter": {"compute": {"step": 0.1}}})").find("steps") != std::string::npos);
  CHECK(refusal(R"({"layout_error": -1})") != "accepted");
  const std::string miss = R"("model": "m", "miss": 0.1, "layout": {"placement": "homogeneous",
                              "schedule": "1f1b", "microbatches": 1, "modules": [{"tp": )";
  CHECK(refusal(R"({"misses": [{)" + miss + R"(3, "ranks": 8}]}}]})").find("tp · cp · pp") !=
        std::string::npos);
  CHECK(refusal(R"({"errors": [{"dispatch": 0.1}], "misses": [{"effects": [1, 2], )" + miss +
                R"(2, "ranks": 8}]}}]})")
            .find("/certainty/misses/0/effects") != std::string::npos);
}

TEST_CASE("every key that an error may name scales the profile") {
  for (const std::string& key : parameter_keys()) {
    HardwareProfile profile = *find_profile("h100-roofline");
    CAPTURE(key);
    if (key.starts_with("stack."))
      CHECK(set_number(profile.stack, key.substr(6), 0.5));
    else if (!key.starts_with("corrections."))
      CHECK(set_number(profile, key, 0.5));
    HardwareProfile scaled = profile;
    scale_parameter(scaled, key, 1.5);
    CHECK(scaled != profile);
  }
}
