// The steps of a job as `watch` compares them: from the metrics of a run, or from a framework's
// log.
#pragma once

#include <optional>
#include <string>

#include "sim/evidence/watch.h"
#include "traces/evidence/steady_steps.h"

namespace polyphony::sim {

struct WatchedJob {
  std::vector<WatchedStep> steps;               // in the order of the file, restarts included
  std::map<int, std::vector<Seconds>> ranks{};  // by rank; empty: one rank alone reports
  std::string bad_steps{};                      // traces::BadSteps::text()
};

// Returns the steps of a run's metrics.jsonl; damaged lines are skipped.
WatchedJob job_of_metrics(const std::string& text);

// Returns the steps of a log, without the first line of each restart. Phases of DeepSpeed get the
// names that a prediction has. `work`: tokens of one rank in a step (StepWork::ranks = 1), and the
// samples of a step. Lines without a time are left out: line_without_time() finds the first.
WatchedJob job_of_log(const traces::FrameworkLog& log, const traces::StepWork& work);
// Returns the number, from 1, of the first line of these that has no time: it states samples per
// second, and work.samples is 0.
std::optional<int> line_without_time(const traces::FrameworkLog& log, const traces::StepWork& work);

}  // namespace polyphony::sim
