#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "shared/hardware/devices.h"
#include "tests/traces/sample_run.h"
#include "traces/calibrate/calibrate.h"

using namespace polyphony;
using namespace polyphony::traces;

namespace {

HardwareProfile prior() {
  HardwareProfile profile = *find_profile("cpu-core-roofline");
  profile.gemm_half_size = 64;  // so that larger GEMMs cost less per FLOP
  return profile;
}

// The true profile of the machine.
HardwareProfile truth() {
  HardwareProfile profile = prior();
  profile.op_overhead = Seconds(230e-6);
  profile.dispatch = Seconds(11e-6);
  profile.message_latency = Seconds(310e-6);
  profile.message_efficiency = 0.31;
  profile.collective_latency = Seconds(170e-6);
  profile.collective_efficiency = 0.23;
  profile.optimizer_overhead = Seconds(2.1e-3);
  profile.optimizer_bytes_efficiency = 0.37;
  profile.corrections[{LayerKind::token_embedding, Phase::forward}] = 2.5;
  profile.corrections[{LayerKind::decoder_block, Phase::forward}] = 1.4;
  profile.corrections[{LayerKind::decoder_block, Phase::backward}] = 0.8;
  profile.corrections[{LayerKind::language_head, Phase::forward}] = 1.7;
  profile.corrections[{LayerKind::language_head, Phase::backward}] = 1.2;
  return profile;
}

// Chunks of one block separate embedding, blocks and head: stage 0 holds the embedding, the last
// stage the head.
Program program(int tensor = 1, int stages = 3) {
  return test::varied_pipeline(
      {.stages = stages, .microbatches = 12, .lanes = 2, .tensor = tensor});
}

// Every activity is randomly longer or shorter; occasionally one takes 10 ms more.
Timeline jittered(const Program& program, const Cluster& cluster, double deviation,
                  std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, deviation);
  const Compiled compiled = hand_made::compile_sound(program);
  CostTable costs = price(program, compiled, cluster, truth());
  for (NodeCost& cost : costs.nodes) {
    const double factor = std::max(0.2, 1 + normal(random));
    const bool hiccup = random() % 50 == 0;
    cost.duration *= factor;
    cost.delay = cost.delay * factor + (hiccup ? Seconds(10e-3) : Seconds(0));
    for (auto i = cost.flows.begin; i < cost.flows.end; ++i) {
      Bytes& bytes = costs.flows[i].bytes;
      bytes = Bytes(static_cast<std::int64_t>(static_cast<double>(bytes.value) * factor));
    }
  }
  return estimate(program, compiled, costs).timeline;
}

void check_near(double value, double expected, double tolerance) {
  CAPTURE(value);
  CAPTURE(expected);
  CHECK(std::abs(value - expected) <= tolerance * std::abs(expected));
}

void check_parameters(const HardwareProfile& fitted, const HardwareProfile& expected,
                      double tolerance) {
  check_near(fitted.op_overhead.count(), expected.op_overhead.count(), tolerance);
  check_near(fitted.dispatch.count(), expected.dispatch.count(), tolerance);
  check_near(fitted.message_latency.count(), expected.message_latency.count(), tolerance);
  check_near(fitted.message_efficiency, expected.message_efficiency, tolerance);
  check_near(fitted.collective_latency.count(), expected.collective_latency.count(), tolerance);
  check_near(fitted.collective_efficiency, expected.collective_efficiency, tolerance);
  check_near(fitted.optimizer_overhead.count(), expected.optimizer_overhead.count(), tolerance);
  check_near(fitted.optimizer_bytes_efficiency, expected.optimizer_bytes_efficiency, tolerance);
  for (const auto& [key, value] : expected.corrections) {
    REQUIRE(fitted.corrections.contains(key));
    check_near(fitted.corrections.at(key), value, tolerance);
  }
}

}  // namespace

TEST_CASE("calibration recovers every parameter from noiseless steps") {
  const Program p = program();
  const Cluster cluster = test::one_node(p, truth());
  const Timeline measured = test::timeline_of(p, cluster, truth());
  const Calibration result =
      calibrate(prior(), {{"run", &p, cluster, {measured}}}, "fitted", "software", "source");
  check_parameters(result.profile, truth(), 1e-6);
  CHECK(result.profile.name == "fitted");
  CHECK(result.profile.software == "software");
  CHECK(result.profile.source == "source");
  CHECK(result.profile.step_error == 0.02);
  REQUIRE(result.runs.size() == 1);
  CHECK(std::abs(result.runs[0].before) > 0.05);
  CHECK(std::abs(result.runs[0].after) < 1e-6);
}

TEST_CASE(
    "ten percent of noise over 25 steps, and some hiccups: predictions within three percent") {
  const Program p = program(1, 12);  // reductions and updates enough for an average
  const Cluster cluster = test::one_node(p, truth());
  std::vector<Timeline> steps;
  for (std::uint64_t s = 0; s < 25; ++s) steps.push_back(jittered(p, cluster, 0.1, 100 + s));
  const Calibration result = calibrate(prior(), {{"run", &p, cluster, steps}}, "fitted", "", "");
  CHECK(result.compute_noise ==
        doctest::Approx(0.1 / std::sqrt(25) * 1.25).epsilon(0.3));  // deviation of a median
  const HardwareProfile expected = truth();
  check_near(result.profile.message_efficiency, expected.message_efficiency, 0.03);
  check_near(result.profile.message_latency.count(), expected.message_latency.count(), 0.03);
  check_near(result.profile.collective_efficiency, expected.collective_efficiency, 0.03);
  // Overhead, dispatch and correction of an op can compensate each other; their sum must be right.
  // The same holds for an update and the step scalars that it waits for.
  const Compiled compiled = hand_made::compile_sound(p);
  const CostTable fitted_costs = price(p, compiled, cluster, result.profile);
  const CostTable true_costs = price(p, compiled, cluster, expected);
  std::size_t scalars = 0;
  for (std::size_t op = 0; op < p.ops.size(); ++op) {
    const auto* collective = std::get_if<Collective>(&p.ops[op].what);
    if (collective != nullptr && !collective->params.valid()) scalars = op;
  }
  for (std::size_t op = 0; op < p.ops.size(); ++op) {
    const bool updates = std::holds_alternative<Update>(p.ops[op].what);
    if (!updates && !std::holds_alternative<Compute>(p.ops[op].what)) continue;
    const auto time = [&](const CostTable& costs) {
      const Seconds own = unshared_time(costs, compiled.op_start[op]);
      return (updates ? own + unshared_time(costs, compiled.op_start[scalars]) : own).count();
    };
    check_near(time(fitted_costs), time(true_costs), 0.03);
  }
}

TEST_CASE(
    "a profile fitted to tensor-parallel ops with inner collectives predicts another layout") {
  const Program p = program(2);
  const Cluster cluster = test::one_node(p, truth());
  const Calibration result = calibrate(
      prior(), {{"tp 2", &p, cluster, {test::timeline_of(p, cluster, truth())}}}, "fitted", "", "");
  const Program other = program(1);
  const Cluster its_cluster = test::one_node(other, truth());
  for (std::size_t op = 0; op < other.ops.size(); ++op) {
    if (!std::holds_alternative<Compute>(other.ops[op].what)) continue;
    check_near(compute_time(other, OpId(op), its_cluster, result.profile).count(),
               compute_time(other, OpId(op), its_cluster, truth()).count(), 1e-5);
  }
}

TEST_CASE("a parameter that no trace informs keeps its prior") {
  // One rank: no messages, no collectives except that of the world of one rank; forwards and
  // backwards of one size only.
  Program p = hand_made::pipeline({.stages = 1, .microbatches = 2});
  const Cluster cluster = test::one_node(p, truth());
  const Timeline measured = test::timeline_of(p, cluster, truth());
  const Calibration result =
      calibrate(prior(), {{"one rank", &p, cluster, {measured}}}, "fitted", "", "");
  CHECK(result.profile.message_latency == prior().message_latency);
  CHECK(result.profile.message_efficiency == prior().message_efficiency);
  CHECK(result.profile.collective_latency == prior().collective_latency);
  CHECK(result.profile.collective_efficiency == prior().collective_efficiency);
  CHECK(result.profile.fabric_efficiency == prior().fabric_efficiency);
  CHECK(result.profile.gemm_efficiency == prior().gemm_efficiency);
  for (const FittedParameter& parameter : result.parameters) {
    if (parameter.name != "message latency") continue;
    CHECK_FALSE(parameter.informed);
    CHECK(parameter.rows == 0);
    CHECK(parameter.value == parameter.prior);
  }
  // The measured sums are still reproduced.
  for (std::size_t op = 0; op < p.ops.size(); ++op) {
    if (!std::holds_alternative<Compute>(p.ops[op].what)) continue;
    check_near(compute_time(p, OpId(op), cluster, result.profile).count(),
               compute_time(p, OpId(op), cluster, truth()).count(), 1e-6);
  }
}

TEST_CASE("ops of layers with given times do not inform parameters") {
  const Program p = program();
  const Cluster cluster = test::one_node(p, truth());
  const Timeline measured = test::timeline_of(p, cluster, truth());
  HardwareProfile given = prior();  // of the second of three blocks, with values far from the truth
  MeasuredLayers block;
  block.first = 1;
  block.last = 2;
  block.forward.constant = Seconds(1);
  given.layer_times["language"] = {block};
  const Calibration result =
      calibrate(given, {{"run", &p, cluster, {measured}}}, "fitted", "software", "source");
  CHECK(result.profile.layer_times == given.layer_times);
  int others = 0;
  for (std::size_t op = 0; op < p.ops.size(); ++op) {
    const auto* compute = std::get_if<Compute>(&p.ops[op].what);
    if (compute == nullptr || (compute->layers.begin <= 2 && compute->layers.end > 2)) continue;
    ++others;
    check_near(compute_time(p, OpId(op), cluster, result.profile).count(),
               compute_time(p, OpId(op), cluster, truth()).count(), 1e-6);
  }
  CHECK(others == 2 * 2 * 2 * 12);  // two of three stages, both replicas, forward and backward
  // All ops are given: the parameters of compute keep their priors.
  std::vector<MeasuredLayers> all(3);
  all[1].part = MeasuredPart::input;
  all[2].part = MeasuredPart::output;
  given.layer_times["language"] = all;
  const Calibration none =
      calibrate(given, {{"run", &p, cluster, {measured}}}, "fitted", "software", "source");
  CHECK(none.profile.op_overhead == prior().op_overhead);
  CHECK(none.profile.corrections == prior().corrections);
  check_near(none.profile.message_latency.count(), truth().message_latency.count(), 1e-6);
}

TEST_CASE("links between nodes are fitted separately") {
  const Program p = program();
  HardwareProfile expected = truth();
  expected.fabric_efficiency = 0.45;
  Cluster cluster = test::one_node(p, expected);
  cluster.ranks_per_node =
      2;  // the two replicas of a stage share a node: messages cross nodes, gradients do not
  cluster.nodes = 3;
  const Calibration result =
      calibrate(prior(), {{"3 nodes", &p, cluster, {test::timeline_of(p, cluster, expected)}}},
                "fitted", "", "");
  check_near(result.profile.fabric_efficiency, 0.45, 1e-4);
  check_near(result.profile.collective_efficiency, expected.collective_efficiency, 1e-4);
  CHECK(result.profile.message_efficiency == prior().message_efficiency);
}

TEST_CASE("step_error is at least the repeatability and the remaining error") {
  const Program p = program();
  const Cluster cluster = test::one_node(p, truth());
  const Timeline exact = test::timeline_of(p, cluster, truth());
  std::vector<Timeline> steps(4, exact);
  for (std::size_t s = 0; s < steps.size(); ++s)
    steps[s].makespan *= 1 + 0.1 * static_cast<double>(s);
  // Makespans of 1, 1.1, 1.2, 1.3: median 1.15, quartiles 1.075 and 1.225, estimate 1.
  const Calibration result = calibrate(prior(), {{"run", &p, cluster, steps}}, "fitted", "", "");
  CHECK(result.runs[0].repeatability == doctest::Approx(0.075 / 1.15));
  CHECK(result.runs[0].after == doctest::Approx(-0.15 / 1.15).epsilon(1e-5));
  CHECK(result.profile.step_error == doctest::Approx(0.15 / 1.15).epsilon(1e-5));
  // A layout that was not measured: the error of the measured ones, ln(1.1304) at 90 % (1.6449
  // deviations) = 0.0745, plus one layout error of 0.04.
  CHECK(*result.profile.certainty.residual == doctest::Approx(0.0846).epsilon(1e-3));
}
