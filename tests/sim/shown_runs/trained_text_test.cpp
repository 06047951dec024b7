// The line at the end of `polyphony run`.
#include "sim/shown_runs/trained_text.h"

#include <doctest/doctest.h>

#include "tests/shared/support/scenario_files.h"

namespace polyphony::tests {

using namespace sim;

TEST_CASE("a run's summary states what there is, and nothing that there is not") {
  Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");  // 32 samples a step
  nlohmann::json summary = {{"steps", 1}, {"median_step_seconds", 0.0}, {"interrupted", false}};
  CHECK(trained_text(scenario, summary) ==
        "1 step of 32 samples, all done before: nothing was left to train (more training.steps "
        "continue the run)");
  summary = {{"steps", 20},     {"median_step_seconds", 2.0}, {"interrupted", true},
             {"loss", nullptr}, {"accuracy", 0.75},           {"device", "cuda"}};
  CHECK(trained_text(scenario, summary) ==
        "20 steps of 32 samples, loss not a number, median step 2.00 s (16 samples/s), 75.0 % of "
        "held-out samples right, on cuda; interrupted, --resume continues");
  summary = {{"steps", 20},
             {"median_step_seconds", 0.0},
             {"interrupted", false},
             {"bad_steps", "1 rewind (loss: 1)"},
             {"stopped", "step 19: its loss"}};
  CHECK(trained_text(scenario, summary) ==
        "20 steps of 32 samples; 1 rewind (loss: 1); stopped at step 19: its loss");
  scenario.data.source = RecordedData{"mix.jsonl"};
  CHECK(recorded_text(scenario).starts_with("the shapes of the samples in mix.jsonl"));
  CHECK(trained_text(scenario, summary).find("; trained on the shapes of") != std::string::npos);
}

}  // namespace polyphony::tests
