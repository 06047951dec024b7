// Small runs on in-process ranks that plan while they train.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "exec/transport/forwarding.h"
#include "exec/transport/in_process.h"
#include "exec/worker/train.h"
#include "shared/check/check.h"
#include "shared/scenario_io/scenario_json.h"
#include "tests/exec/support/temp_folder.h"
#include "tests/shared/support/example_models.h"
#include "traces/format/metrics.h"

namespace polyphony::exec::testing {

// Counts what lies in the store.
class Letters : public ForwardingTransport {
 public:
  Letters(Transport& inner, std::atomic<int>& lying) : ForwardingTransport(inner), lying_(lying) {}
  void post(const std::string& key, const std::string& bytes) override {
    ++lying_;
    ForwardingTransport::post(key, bytes);
  }
  std::string fetch(const std::string& key) override {
    std::string bytes = ForwardingTransport::fetch(key);
    --lying_;
    return bytes;
  }

 private:
  std::atomic<int>& lying_;
};

// One encoder rank before a pipeline of two; samples of no image to three, of one word to ten.
struct Question {
  Scenario scenario;
  Layout layout;
  std::unique_ptr<Dataset> dataset;

  explicit Question(std::uint64_t seed = 1) {
    const std::string file = "scenarios/tiny_non_colocated.json";
    scenario = read_scenario(slurp(file), file, slurp);
    scenario.data.seed = seed;
    scenario.data.sequence = 22;  // three images of four rows and ten words
    scenario.data.source = SyntheticData{{.kind = Distribution::Kind::uniform, .a = 0, .b = 3},
                                         {.kind = Distribution::Kind::uniform, .a = 1, .b = 10},
                                         examples::always(1)};
    scenario.layout->planner = Planning::entrain;
    store_planned(*scenario.layout, make_plan(scenario, *scenario.layout), scenario);
    layout = *scenario.layout;
    REQUIRE_FALSE(check_layout(scenario, layout).has_value());
    dataset = open_dataset(scenario, "");
  }
};

struct PlayedRun {
  TrainResult result;
  std::vector<double> losses;
  std::vector<bool> late;
  int left = 0;  // letters
};

inline TrainOptions options_of(Planner planner, std::int64_t steps) {
  TrainOptions options;
  options.planner = planner;
  options.steps = steps;
  options.live.budget = Seconds(60);
  return options;
}

inline PlayedRun play(const Question& question, const Layout& layout, TrainOptions options,
                      const std::string& folder = "") {
  const TempFolder own;
  options.out = folder.empty() ? own.path() + "/run" : folder;
  PlayedRun run;
  std::atomic<int> lying{0};
  exec::run_in_process(world_size(layout), [&](Transport& transport) {
    Letters letters(transport, lying);
    const TrainResult result =
        train(letters, question.scenario, layout, *question.dataset, options);
    if (transport.rank() == Rank(0)) run.result = result;
  });
  run.left = lying;
  for (const auto& line : traces::parse_metrics(slurp(options.out + "/metrics.jsonl")).lines)
    if (const auto* step = std::get_if<traces::StepMetrics>(&line)) {
      run.losses.push_back(step->loss);
      run.late.push_back(step->late_plan.value_or(false));
    }
  return run;
}
inline PlayedRun play(const Question& question, const TrainOptions& options,
                      const std::string& folder = "") {
  return play(question, question.layout, options, folder);
}

// The layout's planner, which dawdles at some steps until it is told to stop.
inline MakePlan dawdling(const Question& question, std::function<bool(std::uint64_t)> at) {
  const auto plan = std::make_shared<Plan>(make_plan(question.scenario, question.layout));
  return [&question, plan, at](std::uint64_t step, const Batch& batch,
                               const std::function<bool()>& stop) {
    while (at(step) && !stop()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return make_step_plan(question.scenario, question.layout, *plan, batch);
  };
}

}  // namespace polyphony::exec::testing
