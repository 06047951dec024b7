// Jitter that was drawn is recovered from the Timelines.
#include "traces/calibrate/jitter.h"

#include <doctest/doctest.h>

#include "shared/chance/jitter.h"
#include "shared/hardware/devices.h"
#include "tests/traces/sample_run.h"

using namespace polyphony;
using namespace polyphony::traces;

namespace {

HardwareProfile machine() { return *find_profile("cpu-core-roofline"); }

Jitter known() {
  Jitter jitter;
  jitter.of[0] = {0.03, 0.05};
  jitter.of[1] = {0.0, 0.2};
  jitter.of[2] = {0.1, 0.02};
  return jitter;
}

// The estimate under each step's random draw, used as a measurement; the first step takes three
// times as long.
std::vector<Timeline> drawn_steps(const Program& program, const Cluster& cluster,
                                  const Jitter& jitter, std::size_t count) {
  const Compiled compiled = hand_made::compile_sound(program);
  CostTable costs = price(program, compiled, cluster, machine());
  std::vector<Timeline> steps;
  for (std::size_t s = 0; s < count; ++s) {
    CostTable one = draw_jitter(compiled, costs, jitter, 500 + s);
    if (s == 0)
      for (NodeCost& node : one.nodes) node.duration *= 3;
    steps.push_back(estimate(program, compiled, one).timeline);
  }
  return steps;
}

}  // namespace

// 200 steps determine a deviation to 5 %; the weights leave some tens of effective ops per kind.
TEST_CASE("deviations of steps and ops are recovered by kind, whatever the first step took") {
  const Program program = test::varied_pipeline({.stages = 4, .microbatches = 12, .lanes = 2});
  const Cluster cluster = test::one_node(program, machine());
  const MeasuredRun run{"run", &program, cluster, drawn_steps(program, cluster, known(), 201)};
  const auto measured = measure_jitter({run}, machine());
  REQUIRE(measured.has_value());
  CHECK(measured->steps == 200);
  const auto compute = measured->of[0], message = measured->of[1], collective = measured->of[2];
  CHECK(compute.step == doctest::Approx(0.03).epsilon(0.15));
  CHECK(compute.op == doctest::Approx(0.05).epsilon(0.1));
  CHECK(message.step < 0.05);
  CHECK(message.op == doctest::Approx(0.2).epsilon(0.15));
  CHECK(collective.step == doctest::Approx(0.1).epsilon(0.2));
}

TEST_CASE("steps with different samples are not jitter") {
  const Program program = test::varied_pipeline({.stages = 2, .microbatches = 6});
  const Cluster cluster = test::one_node(program, machine());
  std::vector<Program> programs;
  MeasuredRun run{"run", &program, cluster, {}};
  for (std::size_t s = 0; s < 12; ++s) {
    Program& own = programs.emplace_back(program);
    for (WorkSize& size : own.sizes) {
      size.tokens *= static_cast<std::int64_t>(1 + s % 4);
      size.pairs *= static_cast<std::int64_t>(1 + s % 4);
      size.text_tokens = size.tokens;
    }
    run.steps.push_back(test::timeline_of(own, cluster, machine()));
  }
  const auto blind = measure_jitter({run}, machine());
  CHECK(blind->of[0].step > 0.1);
  for (const Program& own : programs) run.step_programs.push_back(&own);
  const auto seeing = measure_jitter({run}, machine());
  CHECK(seeing->of[0].step < 1e-9);
  CHECK(seeing->of[0].op < 1e-9);
}

TEST_CASE("three steps are too few to measure jitter") {
  const Program program = test::varied_pipeline({.stages = 2, .microbatches = 2});
  const Cluster cluster = test::one_node(program, machine());
  const MeasuredRun run{"run", &program, cluster, drawn_steps(program, cluster, known(), 3)};
  CHECK_FALSE(measure_jitter({run}, machine()).has_value());
}

// Weights 1, 3: the value with weight 3 holds everything above a quarter.
TEST_CASE("weighted quantiles") {
  const std::vector<WeighedValue> values{{2, 3}, {1, 1}};
  CHECK(weighed_quantile(values, 0.25) == 1);
  CHECK(weighed_quantile(values, 0.5) == 2);
  CHECK(weighed_quantile(values, 1) == 2);
}

TEST_CASE("a calibration states its errors, its ranges and its jitter") {
  const Program program = test::varied_pipeline({.stages = 3, .microbatches = 12, .lanes = 2});
  const Cluster cluster = test::one_node(program, machine());
  const MeasuredRun run{"run", &program, cluster, drawn_steps(program, cluster, known(), 25)};
  const Calibration result = calibrate(machine(), {run}, "fitted", "software", "source");
  const Certainty& certainty = result.profile.certainty;
  CHECK(certainty.source == "source");
  CHECK(certainty.layout_error.has_value());
  REQUIRE(certainty.jitter.has_value());
  CHECK(certainty.jitter->steps == 24);
  // Messages of varied_pipeline have 2^12 to 2^21 bytes; it has two replicas.
  CHECK(certainty.fitted.message_bytes == FittedRange{1 << 12, 1 << 21});
  CHECK(certainty.fitted.ranks == FittedRange{2, 2});
  // Nothing crossed nodes: the error of the fabric is unchanged.
  bool fabric = false;
  for (const ParameterError& error : certainty.errors)
    fabric = fabric || (error.size() == 1 && error.contains("fabric_efficiency"));
  CHECK(fabric);
  REQUIRE(result.runs[0].jitter_repeatability.has_value());
  CHECK(*result.runs[0].jitter_repeatability > 0.01);
}
