#include "sim/evidence/watched_steps.h"

#include <algorithm>

#include "traces/format/metrics.h"

namespace polyphony::sim {
namespace {

using traces::LoggedStep;

// The names of DeepSpeed's phases in a prediction.
std::map<std::string, Seconds> phases_of(const LoggedStep& line) {
  std::map<std::string, Seconds> phases;
  for (const auto& [phase, time] : line.phases) {
    if (phase == "fwd") phases["forward"] = time;
    if (phase == "bwd_inner") phases["backward"] = time;
    if (phase == "bwd_allreduce") phases["all-reduce"] = time;
    if (phase == "step") phases["optimizer"] = time;
  }
  return phases;
}

std::vector<Seconds> times_of(const std::vector<LoggedStep>& lines, const traces::StepWork& work) {
  std::vector<Seconds> times;
  for (const LoggedStep& line : lines)
    if (const auto time = traces::time_of(line, work)) times.push_back(*time);
  return times;
}

// The lines of all attempts, without the first of each restart.
std::vector<const LoggedStep*> lines_of(const traces::FrameworkLog& log) {
  std::vector<const LoggedStep*> lines;
  for (std::size_t attempt = 0; attempt < log.attempts.size(); ++attempt)
    for (std::size_t i = attempt > 0 ? 1 : 0; i < log.attempts[attempt].size(); ++i)
      lines.push_back(&log.attempts[attempt][i]);
  return lines;
}

}  // namespace

WatchedJob job_of_metrics(const std::string& text) {
  WatchedJob job;
  const traces::Metrics metrics = traces::parse_metrics(text);
  job.bad_steps = traces::bad_steps_of(metrics).text();
  for (const traces::MetricsLine& line : metrics.lines)
    if (const auto* step = std::get_if<traces::StepMetrics>(&line)) {
      WatchedStep& one = job.steps.emplace_back(WatchedStep{step->step, step->seconds, {}});
      if (step->late_plan) one.phases["waiting for data"] = step->waited;
    }
  return job;
}

WatchedJob job_of_log(const traces::FrameworkLog& log, const traces::StepWork& work) {
  WatchedJob job;
  std::vector<Seconds> speaker;
  int speaker_rank = 0;
  for (const LoggedStep* line : lines_of(log))
    if (const auto time = traces::time_of(*line, work)) {
      job.steps.push_back({line->step, *time, phases_of(*line)});
      speaker.push_back(*time);
      speaker_rank = std::max(line->rank, 0);
    }
  for (const auto& [rank, lines] : log.other_ranks) job.ranks[rank] = times_of(lines, work);
  if (!job.ranks.empty()) job.ranks[speaker_rank] = speaker;
  return job;
}

std::optional<int> line_without_time(const traces::FrameworkLog& log,
                                     const traces::StepWork& work) {
  for (const LoggedStep* line : lines_of(log))
    if (!traces::time_of(*line, work)) return line->line;
  return {};
}

}  // namespace polyphony::sim
