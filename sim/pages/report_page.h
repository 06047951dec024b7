// The sections of `polyphony report`: runs next to their predictions, and training.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/plan_answers/plan_answer.h"
#include "sim/step_answers/comparison.h"
#include "traces/format/metrics.h"
#include "traces/report/report.h"

namespace polyphony::sim {

// A run and its predictions.
struct ReportedRun {
  const traces::Measurement& run;
  const RunComparison& before;           // by the profile before calibration
  const RunComparison* after = nullptr;  // by the calibrated profile; null: there is none
  const PlanAnswer* plan = nullptr;      // whose stages are drawn; null: none
  const RunComparison& best() const { return after ? *after : before; }
};

// Returns the section of one run: both Gantt charts, seconds by part, memory, stages.
traces::Section run_section(const ReportedRun& of);

// One row of the table of all runs. `verdict` is that of the best prediction.
struct RunSummary {
  std::string source, layout;
  Seconds measured{};
  double repeatability = 0, before = 0;
  std::optional<double> after;
  traces::Verdict verdict{};
};
// `bar`: see traces::Comparison::verdict().
RunSummary summary_of(const ReportedRun& of, double bar);

struct RunCounts {
  std::size_t within = 0, unknown = 0;
};
RunCounts count_verdicts(const std::vector<RunSummary>& runs);
// Returns the table of all runs. `profiles`: which profiles predicted before and after.
traces::Section runs_section(const std::vector<RunSummary>& runs, const std::string& profiles);
// Returns how many of the runs are within the bar.
traces::Fact runs_fact(const std::vector<RunSummary>& runs, double bar);

// A run's folder and its metrics.
struct RunMetrics {
  std::string folder;
  traces::Metrics metrics;
};
// Returns the section of losses and of accuracies on held-out samples.
traces::Section training_section(const std::vector<RunMetrics>& runs);

}  // namespace polyphony::sim
