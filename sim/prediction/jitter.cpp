#include "sim/prediction/jitter.h"

#include <algorithm>
#include <cmath>

#include "shared/chance/jitter.h"
#include "shared/text/figure_text.h"
#include "sim/runner/simulate.h"
#include "sim/runner/worker_pool.h"
#include "traces/compare/spread.h"

namespace polyphony::sim {
namespace {

// Every simulation runs in a process of its own, so several threads can simulate.
std::variant<JitteredSteps, Infeasible> simulated_steps(
    const Prediction& prediction, const Jitter& jitter, std::size_t seeds, int jobs,
    const std::function<void(double)>& progress) {
  using Outcome = std::variant<Seconds, Infeasible>;
  const auto outcomes = run_on_threads(
      jobs, seeds,
      [&](std::size_t seed) -> Outcome {
        const CostTable drawn = draw_jitter(prediction.compiled, prediction.costs, jitter, seed);
        const auto timeline = simulate(prediction.program, prediction.compiled, drawn);
        if (const auto* no = std::get_if<Infeasible>(&timeline)) return *no;
        return std::get<Timeline>(timeline).makespan;
      },
      [&](std::size_t done) { progress(static_cast<double>(done) / static_cast<double>(seeds)); });
  JitteredSteps result{{}, true};
  for (const TaskResult<Outcome>& outcome : outcomes) {
    const auto* failed = std::get_if<TaskFailed>(&outcome);
    POLYPHONY_CHECK(!failed, failed->what);
    const auto& step = std::get<Outcome>(outcome);
    if (const auto* no = std::get_if<Infeasible>(&step)) return *no;
    result.steps.push_back(std::get<Seconds>(step));
  }
  return result;
}

}  // namespace

std::variant<JitteredSteps, Infeasible> jittered_steps(
    const Prediction& prediction, const Jitter& jitter, int seeds, Predictor predictor, int jobs,
    const std::function<void(double share)>& progress) {
  const auto count = static_cast<std::size_t>(seeds);
  JitteredSteps result;
  if (predictor == Predictor::simulate && seeds <= kSimulatedSeeds) {
    auto outcome = simulated_steps(prediction, jitter, count, jobs, progress);
    if (std::holds_alternative<Infeasible>(outcome)) return outcome;
    result = std::get<JitteredSteps>(std::move(outcome));
  } else {
    CostTable drawn;
    for (std::size_t seed = 0; seed < count; ++seed) {
      draw_jitter(prediction.compiled, prediction.costs, jitter, seed, drawn);
      result.steps.push_back(estimate_step(prediction.compiled, drawn).step());
      progress(static_cast<double>(seed + 1) / static_cast<double>(count));
    }
  }
  std::sort(result.steps.begin(), result.steps.end());
  return result;
}

bool reaches(std::size_t count, double q) {
  return static_cast<double>(count) * (1 - q) >= 1 - 1e-9;
}

std::string quantiles_text(const std::vector<Seconds>& sorted,
                           const std::vector<double>& quantiles) {
  std::string text;
  bool all = true;
  for (const double q : quantiles) {
    all = all && reaches(sorted.size(), q);
    if (!all) break;
    const double percent = q * 100;
    const bool whole = std::abs(percent - std::round(percent)) < 1e-9;
    text += (text.empty() ? "p" : ", p") + number_text(percent, whole ? 0 : 1) + " " +
            seconds_text(traces::quantile(sorted, q));
  }
  if (all) return text;
  return text + (text.empty() ? "" : ", ") + "largest of " + std::to_string(sorted.size()) + ": " +
         seconds_text(sorted.back());
}

}  // namespace polyphony::sim
