// polyphony report: writes one self-contained HTML page of sweeps, runs, predictions before and
// after calibration, Gantt charts, losses and memory.
#include <filesystem>
#include <iostream>

#include "shared/files/run_paths.h"
#include "sim/cli/command.h"
#include "sim/cli/measurements.h"
#include "sim/console/console.h"
#include "sim/pages/report_page.h"
#include "sim/pages/sweep_page.h"
#include "traces/report/report.h"

namespace polyphony::sim {
namespace {

// Several sections under one title.
traces::Section section_of(const std::string& path, const std::vector<traces::Section>& parts) {
  traces::Section whole{"Which layout: " + path, {}};
  for (const traces::Section& part : parts)
    whole.blocks.insert(whole.blocks.end(), part.blocks.begin(), part.blocks.end());
  return whole;
}

traces::Section search_section(const std::string& path) {
  const auto answer = read_searched(read_records(path), path);
  const auto* varied = std::get_if<SearchedVaried>(&answer);
  return section_of(path,
                    varied ? vary_sections(*varied) : sweep_sections(std::get<Searched>(answer)));
}

// The metrics of a run; damage is reported on stderr. Empty where the run kept none.
traces::Metrics metrics_of(const std::string& folder) {
  const std::string path = RunPaths{folder}.metrics();
  if (!std::filesystem::exists(path)) return {};
  traces::Metrics metrics = traces::parse_metrics(read_records(path));
  for (const std::string& what : metrics.damage) std::cerr << path << ": " << what << "\n";
  return metrics;
}

std::vector<RunMetrics> trained_runs(const std::vector<std::string>& folders) {
  std::vector<RunMetrics> runs;
  for (const std::string& folder : folders) runs.push_back({folder, metrics_of(folder)});
  return runs;
}

// Returns the plan whose stages are drawn. It is made for the samples of the run's data set: where
// these are not readable, there is none and the reason is printed.
std::optional<PlanAnswer> plan_of(const traces::Measurement& run, const ProfileChoice& choice) {
  Scenario scenario = run.scenario;
  try {
    if (scenario.data.samples.empty()) read_samples(scenario);
  } catch (const InputError& error) {
    std::cerr << run.source << ": its stages are not drawn: " << error.what() << "\n";
    return {};
  }
  auto plan = answer_plan(scenario, load_profile(scenario, choice));
  auto* answer = std::get_if<PlanAnswer>(&plan);
  if (!answer || answer->splits.empty()) return {};
  return std::move(*answer);
}

// "Before: machine.json; after: calibrated.json, fitted to runs/a".
std::string profiles_text(const Arguments& args) {
  const std::string profile = args.text("profile"), runs = args.text("calibrated-on");
  std::string text = "Before: " + (profile.empty() ? "the scenario's profile" : profile);
  if (args.has("calibrated"))
    text += "; after: " + args.text("calibrated") + (runs.empty() ? "" : ", fitted to " + runs);
  return text;
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
      "calibrated-on", "the runs it was fitted to", cxxopts::value<std::string>())(
      "sweep", "JSON of `polyphony sweep --format json`, or of --vary; several, by commas",
      cxxopts::value<std::vector<std::string>>())(
      "training", "folders whose loss and accuracy are shown; several, by commas",
      cxxopts::value<std::vector<std::string>>())(
      "out", "the page", cxxopts::value<std::string>()->default_value("report.html"));
  add_bar(args);
  if (args.parse(argc, argv)) return 0;
  traces::Report page{"Polyphony report",
                      "Predicted and measured",
                      {},
                      {},
                      "Made by `polyphony report`; nothing is loaded from elsewhere."};
  for (const std::string& path : args.texts("sweep")) page.sections.push_back(search_section(path));

  std::vector<traces::Section> details;
  std::vector<RunSummary> runs;
  for (const traces::Measurement& run : read_measurements(args)) {
    const RunComparison before = compare_run(run, load_profile(run.scenario, args.profile()));
    std::optional<RunComparison> after;
    if (args.has("calibrated"))
      after = compare_run(
          run, load_profile(run.scenario, {args.text("calibrated"), args.text("stack")}));
    const std::optional<PlanAnswer> plan = plan_of(run, args.profile());
    const ReportedRun reported{run, before, after ? &*after : nullptr, plan ? &*plan : nullptr};
    runs.push_back(summary_of(reported, args.real("bar")));
    details.push_back(run_section(reported));
  }
  if (!runs.empty()) {
    page.facts.push_back(runs_fact(runs, args.real("bar")));
    page.sections.push_back(runs_section(runs, profiles_text(args)));
  }
  for (traces::Section& section : details) page.sections.push_back(std::move(section));
  if (args.has("training"))
    page.sections.push_back(training_section(trained_runs(args.texts("training"))));
  if (page.sections.empty())
    throw InputError("polyphony report", "", "has nothing to show",
                     "give runs, --sweep or --training");
  write_file(args.text("out"), traces::to_html(page));
  const RunCounts counts = count_verdicts(runs);
  if (args.json())
    std::cout << nlohmann::json{{"out", args.text("out")},
                                {"runs", runs.size()},
                                {"within", counts.within},
                                {"unknown", counts.unknown}}
                     .dump(2)
              << "\n";
  else
    std::cout << "wrote " << args.text("out") << " ("
              << counted(static_cast<std::int64_t>(page.sections.size()), "section", "sections")
              << ")\n";
  return 0;
}

}  // namespace polyphony::sim
