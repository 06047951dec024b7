// polyphony report: writes one self-contained HTML page of sweeps, runs, predictions before and
// after calibration, Gantt charts, losses and memory.
#include <cmath>
#include <filesystem>
#include <iostream>

#include "shared/files/run_paths.h"
#include "sim/cli/command.h"
#include "sim/cli/measurements.h"
#include "sim/console/console.h"
#include "sim/pages/plan_page.h"
#include "sim/pages/sweep_page.h"
#include "sim/plan_answers/plan_answer.h"
#include "sim/step_answers/comparison.h"
#include "traces/format/metrics.h"
#include "traces/report/report.h"
#include "traces/report/report_parts.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

json read_json(const std::string& path) {
  json value = json::parse(read_records(path), nullptr, false);
  if (value.is_discarded())
    throw InputError(path, "", "is not JSON (cut off?)", "write it again with --format json");
  return value;
}

// Several sections under one title.
traces::Section section_of(const std::string& path, const std::vector<traces::Section>& parts) {
  traces::Section whole{"Which layout: " + path, {}};
  for (const traces::Section& part : parts)
    whole.blocks.insert(whole.blocks.end(), part.blocks.begin(), part.blocks.end());
  return whole;
}

traces::Section sweep_section(const std::string& path) {
  const json sweep = read_json(path);
  try {
    return section_of(path, answer_sections(sweep));
  } catch (const json::exception&) {
    throw InputError(path, "", "is not the answer of a sweep of this version",
                     "polyphony sweep SCENARIO --format json > " + path);
  }
}

// The metrics of a run; damage is reported on stderr. Empty where the run kept none.
traces::Metrics metrics_of(const std::string& folder) {
  const std::string path = RunPaths{folder}.metrics();
  if (!std::filesystem::exists(path)) return {};
  traces::Metrics metrics = traces::parse_metrics(read_records(path));
  for (const std::string& what : metrics.damage) std::cerr << path << ": " << what << "\n";
  return metrics;
}

// (step, loss)
std::vector<std::pair<double, double>> losses(const traces::Metrics& metrics) {
  std::vector<std::pair<double, double>> points;
  for (const traces::MetricsLine& line : metrics.lines)
    if (const auto* step = std::get_if<traces::StepMetrics>(&line);
        step && std::isfinite(step->loss))
      points.emplace_back(static_cast<double>(step->step), step->loss);
  return points;
}

traces::Section training_section(const std::vector<std::string>& folders) {
  traces::Table table{"Held-out questions answered, each asked alone",
                      {"run", "step", "accuracy", "questions"},
                      {},
                      {},
                      ""};
  std::vector<std::pair<std::string, std::vector<std::pair<double, double>>>> curves;
  for (const std::string& folder : folders) {
    const traces::Metrics metrics = metrics_of(folder);
    for (const traces::MetricsLine& line : metrics.lines)
      if (const auto* accuracy = std::get_if<traces::Accuracy>(&line))
        table.rows.push_back({folder, std::to_string(accuracy->step), percent_text(accuracy->share),
                              std::to_string(accuracy->held_out)});
    curves.emplace_back(folder, losses(metrics));
  }
  return {"Training", {table, traces::loss_figure(curves)}};
}

// Returns the section that draws the run's stages. A plan is made for the samples of the run's data
// set: where these cannot be read, the page does without and the reason is printed.
std::vector<traces::Block> plan_blocks(const traces::Measurement& run,
                                       const ProfileChoice& choice) {
  Scenario scenario = run.scenario;
  try {
    if (scenario.data.samples.empty()) read_samples(scenario);
  } catch (const InputError& error) {
    std::cerr << run.source << ": its stages are not drawn: " << error.what() << "\n";
    return {};
  }
  const auto plan = answer_plan(scenario, load_profile(scenario, choice));
  const auto* answer = std::get_if<PlanAnswer>(&plan);
  if (!answer || answer->splits.empty()) return {};
  return plan_section(*answer).blocks;
}

}  // namespace

int report_command(int argc, char** argv) {
  Arguments args(
      "report",
      "Writes one HTML page that opens offline: layouts, predicted and measured Gantt charts, "
      "errors, losses, memory.",
      "RUN...",
      "  polyphony report runs/a runs/b --profile machine.json --calibrated "
      "calibrated.json --sweep sweep.json --out report.html");
  add_measurement_options(args);
  args.add_profile("profile before calibration");
  args.add()("calibrated", "profile after calibration", cxxopts::value<std::string>())(
      "calibrated-on", "the runs it was fitted to",
      cxxopts::value<std::string>()->default_value(""))(
      "sweep", "JSON of `polyphony sweep --format json`, or of --vary; several, by commas",
      cxxopts::value<std::vector<std::string>>())(
      "training", "folders whose loss and accuracy are shown; several, by commas",
      cxxopts::value<std::vector<std::string>>())(
      "out", "the page", cxxopts::value<std::string>()->default_value("report.html"))(
      "bar",
      "largest error of a step that counts as predicted, as a share (or twice the repeatability, "
      "if "
      "that is more); steps that differ among themselves by more than it decide nothing",
      cxxopts::value<double>()->default_value("0.1"));
  if (args.parse(argc, argv)) return 0;
  traces::Report page{"Polyphony report",
                      "Predicted and measured",
                      {},
                      {},
                      "Made by `polyphony report`; nothing is loaded from elsewhere."};
  for (const std::string& path : args.texts("sweep")) page.sections.push_back(sweep_section(path));

  traces::Table errors{
      "Step time, predicted and measured",
      {"run", "layout", "measured", "repeatability", "error before", "error after"},
      {},
      {},
      ""};
  std::vector<traces::Section> details;
  std::size_t within = 0, unknown = 0, total = 0;
  for (const traces::Measurement& run : read_measurements(args)) {
    const RunComparison before = compare_run(run, load_profile(run.scenario, args.profile()));
    std::optional<RunComparison> after;
    if (args.has("calibrated"))
      after = compare_run(
          run, load_profile(run.scenario, {args.text("calibrated"), args.text("stack")}));
    const RunComparison& best = after ? *after : before;
    ++total;
    const traces::Verdict verdict = best.comparison.verdict(args.real("bar"));
    within += verdict == traces::Verdict::within ? 1 : 0;
    unknown += verdict == traces::Verdict::unknown ? 1 : 0;
    errors.rows.push_back({run.source, before.layout + (run.pace ? " (emulated compute)" : ""),
                           seconds_text(before.comparison.measured_step.median),
                           "±" + percent_text(before.comparison.repeatability()),
                           signed_percent_text(before.comparison.step_error),
                           after ? signed_percent_text(after->comparison.step_error) : "-"});
    traces::Section section{before.layout + (run.pace ? ", emulated compute" : ""), {}};
    section.blocks.push_back(
        traces::gantts(run.program(), best.prediction.timeline, run.steps[run.middle]));
    section.blocks.push_back(traces::comparison_table(best.comparison, "Seconds by part"));
    section.blocks.push_back(traces::memory_figure(run.program(), best.prediction.timeline,
                                                   run.scenario.cluster.device.memory));
    for (traces::Block& block : plan_blocks(run, args.profile()))
      section.blocks.push_back(std::move(block));
    details.push_back(std::move(section));
  }
  if (total > 0) {
    errors.note = "Before: " +
                  (args.text("profile").empty() ? std::string("the scenario's profile")
                                                : args.text("profile")) +
                  (args.has("calibrated") ? "; after: " + args.text("calibrated") +
                                                (args.text("calibrated-on").empty()
                                                     ? ""
                                                     : ", fitted to " + args.text("calibrated-on"))
                                          : std::string()) +
                  ". Repeatability: half the interquartile range of the measured steps, less what "
                  "their batches are predicted to differ by. Not "
                  "modeled: cores shared by ranks, caches, the loader.";
    page.facts.push_back(
        {std::to_string(within) + " of " + std::to_string(total),
         "runs within max(" + percent_text(args.real("bar"), 0) + ", 2x repeatability)" +
             (unknown == 0 ? std::string()
                           : "; of " + std::to_string(unknown) +
                                 " the measured steps differ by more than that bar: undecided")});
    page.sections.push_back({"Predicted and measured", {errors}});
  }
  for (traces::Section& section : details) page.sections.push_back(std::move(section));
  if (args.has("training")) {
    page.sections.push_back(training_section(args.texts("training")));
  }
  if (page.sections.empty())
    throw InputError("polyphony report", "", "has nothing to show",
                     "give runs, --sweep or --training");
  write_file(args.text("out"), traces::to_html(page));
  if (args.json())
    std::cout << json{{"out", args.text("out")},
                      {"runs", total},
                      {"within", within},
                      {"unknown", unknown}}
                     .dump(2)
              << "\n";
  else
    std::cout << "wrote " << args.text("out") << " ("
              << counted(static_cast<std::int64_t>(page.sections.size()), "section", "sections")
              << ")\n";
  return 0;
}

}  // namespace polyphony::sim
