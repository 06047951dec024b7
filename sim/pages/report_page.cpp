#include "sim/pages/report_page.h"

#include <algorithm>
#include <cmath>

#include "shared/text/figure_text.h"
#include "sim/pages/plan_page.h"
#include "traces/report/report_parts.h"

namespace polyphony::sim {
namespace {

// (step, loss)
std::vector<std::pair<double, double>> losses(const traces::Metrics& metrics) {
  std::vector<std::pair<double, double>> points;
  for (const traces::MetricsLine& line : metrics.lines)
    if (const auto* step = std::get_if<traces::StepMetrics>(&line);
        step && std::isfinite(step->loss))
      points.emplace_back(static_cast<double>(step->step), step->loss);
  return points;
}

}  // namespace

traces::Section run_section(const ReportedRun& of) {
  const RunComparison& best = of.best();
  traces::Section section{of.before.words + (of.run.pace ? ", emulated compute" : ""), {}};
  section.blocks.push_back(
      traces::gantts(of.run.program(), best.prediction.timeline, of.run.steps[of.run.middle]));
  section.blocks.push_back(traces::comparison_table(best.comparison, "Seconds by part"));
  section.blocks.push_back(traces::memory_figure(of.run.program(), best.prediction.timeline,
                                                 of.run.scenario.cluster.device.memory));
  if (of.plan)
    for (traces::Block& block : plan_section(*of.plan).blocks)
      section.blocks.push_back(std::move(block));
  return section;
}

RunSummary summary_of(const ReportedRun& of, double bar) {
  return {of.run.source,
          of.before.words + (of.run.pace ? " (emulated compute)" : ""),
          of.before.comparison.measured_step.median,
          of.before.comparison.repeatability(),
          of.before.comparison.step_error,
          of.after ? std::optional(of.after->comparison.step_error) : std::nullopt,
          of.best().comparison.verdict(bar)};
}

RunCounts count_verdicts(const std::vector<RunSummary>& runs) {
  const auto counted = [&](traces::Verdict verdict) {
    return static_cast<std::size_t>(std::count_if(
        runs.begin(), runs.end(), [&](const RunSummary& run) { return run.verdict == verdict; }));
  };
  return {counted(traces::Verdict::within), counted(traces::Verdict::unknown)};
}

traces::Section runs_section(const std::vector<RunSummary>& runs, const std::string& profiles) {
  traces::Table errors{
      "Step time, predicted and measured",
      {"run", "layout", "measured", "repeatability", "error before", "error after"},
      {},
      {},
      ""};
  for (const RunSummary& run : runs)
    errors.rows.push_back({run.source, run.layout, seconds_text(run.measured),
                           "±" + percent_text(run.repeatability), signed_percent_text(run.before),
                           run.after ? signed_percent_text(*run.after) : "-"});
  errors.note = profiles +
                ". Repeatability: half the interquartile range of the measured steps, less what "
                "their batches are predicted to differ by. Not "
                "modeled: cores shared by ranks, caches, the loader.";
  return {"Predicted and measured", {errors}};
}

traces::Fact runs_fact(const std::vector<RunSummary>& runs, double bar) {
  const RunCounts counts = count_verdicts(runs);
  return {std::to_string(counts.within) + " of " + std::to_string(runs.size()),
          "runs within max(" + percent_text(bar, 0) + ", 2x repeatability)" +
              (counts.unknown == 0
                   ? std::string()
                   : "; of " + std::to_string(counts.unknown) +
                         " the measured steps differ by more than that bar: undecided")};
}

traces::Section training_section(const std::vector<RunMetrics>& runs) {
  traces::Table table{"Held-out questions answered, each asked alone",
                      {"run", "step", "accuracy", "questions"},
                      {},
                      {},
                      ""};
  std::vector<std::pair<std::string, std::vector<std::pair<double, double>>>> curves;
  for (const RunMetrics& run : runs) {
    for (const traces::MetricsLine& line : run.metrics.lines)
      if (const auto* accuracy = std::get_if<traces::Accuracy>(&line))
        table.rows.push_back({run.folder, std::to_string(accuracy->step),
                              percent_text(accuracy->share), std::to_string(accuracy->held_out)});
    curves.emplace_back(run.folder, losses(run.metrics));
    if (const std::string bad = traces::bad_steps_of(run.metrics).text(); !bad.empty())
      table.note += (table.note.empty() ? "" : "; ") + run.folder + ": " + bad;
  }
  return {"Training", {table, traces::loss_figure(curves)}};
}

}  // namespace polyphony::sim
