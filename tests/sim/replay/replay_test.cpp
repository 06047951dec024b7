// Replays of a synthetic run whose true times are known, unchanged and with changes.
#include "sim/replay/replay.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "shared/chance/jitter.h"
#include "shared/hardware/devices.h"
#include "shared/scenario/typical_batch.h"
#include "shared/split/balanced_plan.h"
#include "sim/replay/replay_json.h"
#include "sim/shown_runs/replay_text.h"
#include "tests/shared/support/scenario_files.h"
#include "tests/shared/support/schema_validator.h"

namespace polyphony::tests {
namespace {

using namespace sim;

HardwareProfile machine() { return *find_profile("cpu-core-roofline"); }

// Steps of the scenario's layout as the profile predicts them; with jitter each step differs.
traces::Measurement recorded(const std::string& file, std::size_t steps, bool jitter) {
  traces::Measurement run;
  run.source = run.scenario_file = file;
  run.scenario = test::scenario_at(file);
  Layout& layout = *run.scenario.layout;
  store_planned(layout, balanced_plan(run.scenario, layout, machine()), run.scenario);
  for (std::size_t s = 0; s < steps; ++s) {
    auto outcome = predict(run.scenario, layout, batch_of_step(run.scenario, s), machine(),
                           Predictor::estimate);
    auto& step = std::get<Prediction>(outcome);
    CostTable costs = step.costs;
    Jitter spread;
    spread.of.fill({.step = 0.05, .op = 0.1});
    if (jitter) costs = draw_jitter(step.compiled, step.costs, spread, s + 1);
    run.steps.push_back(estimate(step.program, step.compiled, costs).timeline);
    run.step_programs.push_back(std::move(step.program));
  }
  run.middle = steps / 2;
  return run;
}

// The true time of the changed scenario's first batch.
Seconds truth(const Scenario& scenario, const HardwareProfile& profile) {
  auto outcome =
      predict(scenario, *scenario.layout, batch_of_step(scenario, 0), profile, Predictor::estimate);
  return std::get<Prediction>(outcome).estimate.timeline.makespan;
}

ReplayAnswer answered(const traces::Measurement& run, const ReplayChange& change) {
  return std::get<ReplayAnswer>(replay(run, machine(), change));
}

// Splits stages again if their number changes, as the command does.
ReplayChange with(const traces::Measurement& run, const std::function<void(Scenario&)>& edit) {
  ReplayChange change;
  change.said = {"a change"};
  change.profile = machine();
  change.scenario = run.scenario;
  edit(*change.scenario);
  return change;
}

template <class Body>
std::string refusal(const Body& body) {
  try {
    body();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a run replayed unchanged takes as long as measured, step by step") {
  for (const char* file : {"scenarios/tiny.json", "scenarios/tiny_colocated.json",
                           "scenarios/tiny_non_colocated.json", "scenarios/tiny_fan_out.json"}) {
    const traces::Measurement run = recorded(file, 5, true);
    ReplayChange nothing;
    nothing.profile = machine();
    const ReplayAnswer answer = answered(run, nothing);
    CHECK(std::abs(answer.replay_error) < 1e-6);
    CHECK_FALSE(answer.after.has_value());
    CHECK(answer.notes.empty());
    CHECK(answer.before.steps.p90.count() ==
          doctest::Approx(answer.measured.p90.count()).epsilon(1e-6));
  }
}

// Without jitter the machine is its profile, and a ratio of its prices is exact: half the
// microbatches, another schedule, a frozen encoder, a slow rank, twice the ranks: replays give
// the time that the machine takes.
TEST_CASE("changes with a known result are replayed exactly") {
  const traces::Measurement run = recorded("scenarios/tiny.json", 3, false);
  const std::vector<std::function<void(Scenario&)>> edits{
      [](Scenario& s) { s.layout->microbatches = 2; },
      [](Scenario& s) { s.layout->schedule = ScheduleKind::gpipe; },
      [](Scenario& s) { s.model.modules[0].trainable = Trainable::frozen; },
      [](Scenario& s) { s.cluster.node_link.rate = 0.1 * s.cluster.node_link.rate; },
      [](Scenario& s) {  // images of 32 x 32 instead of 16 x 16 pixels
        for (Module& module : s.model.modules)
          if (module.kind == ModuleKind::vision) module.image_size = 32;
        s.data.sequence = 0;
      },
      [](Scenario& s) { s.cluster.degraded = {{.rank = 1, .device = 0.5, .nic_of = {}}}; },
      [](Scenario& s) {
        for (ModuleLayout& grid : s.layout->modules) grid.recompute = Recompute::full;
      }};
  for (std::size_t i = 0; i < edits.size(); ++i) {
    CAPTURE(i);
    const ReplayChange change = with(run, edits[i]);
    const ReplayAnswer answer = answered(run, change);
    REQUIRE(answer.after.has_value());
    const Seconds step = truth(*change.scenario, machine());
    CHECK(answer.after->timeline.makespan.count() == doctest::Approx(step.count()).epsilon(1e-3));
    Seconds explained{};
    for (const PathDifference& row : answer.differences) explained += row.difference();
    CHECK(
        explained.count() ==
        doctest::Approx((answer.after->timeline.makespan - answer.before.timeline.makespan).count())
            .epsilon(1e-6));
  }
}

TEST_CASE("unmeasured time widens the interval, and the answer matches its schema") {
  const traces::Measurement run = recorded("scenarios/tiny.json", 6, true);
  ReplayChange faster;
  faster.profile = machine();
  faster.said = {"language=2 as fast"};
  faster.faster = {{"language", 2}};
  const ReplayAnswer known = answered(run, faster);
  const ReplayAnswer scaled =
      answered(run, with(run, [](Scenario& s) { s.layout->microbatches = 2; }));
  CHECK(known.after->steps.median < known.before.steps.median);
  CHECK(known.jitter > 0);
  CHECK(scaled.belief.residual > known.belief.residual);
  const SecondsInterval at = interval(scaled.belief, 0.8);
  CHECK(at.low < scaled.after->steps.median);
  CHECK(at.high > scaled.after->steps.median);
  const nlohmann::json root = nlohmann::json::parse(replay_schema());
  CHECK(test::SchemaValidator(root).accepts(to_json({known, scaled}), root));
  CHECK(replay_text(known).find("which explains the difference") != std::string::npos);
  CHECK(traces::to_html(replay_page({known, scaled})).find("Critical path after") !=
        std::string::npos);
}

TEST_CASE("errors: too few steps, a class that no op has") {
  traces::Measurement run = recorded("scenarios/tiny.json", 3, false);
  ReplayChange faster;
  faster.profile = machine();
  faster.faster = {{"audio", 2}};
  CHECK(refusal([&] { replay(run, machine(), faster); }).find("language forward") !=
        std::string::npos);
  run.steps.resize(2);
  run.step_programs.resize(2);
  CHECK(refusal([&] { replay(run, machine(), {}); }).find("needs at least 3 traced steps (got ") !=
        std::string::npos);
}

}  // namespace polyphony::tests
