#include "sim/cli/worker_options.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "shared/scenario_io/scenario_json.h"
#include "shared/split/balanced_plan.h"
#include "sim/console/console.h"
#include "traces/format/metrics.h"

namespace polyphony::sim {

void MetricsTail::update() {
  std::ifstream file(path_, std::ios::binary);
  if (!file) return;
  std::error_code failed;
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(path_, failed));
  if (failed || size < read_) read_ = 0;  // a resumed run dropped the steps after its checkpoint
  file.seekg(read_);
  std::string fresh((std::istreambuf_iterator<char>(file)), {});
  read_ += static_cast<std::streamoff>(fresh.size());
  rest_ += fresh;
  for (std::size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n')) {
    const auto line = traces::parse_metrics_line(rest_.substr(0, end));
    rest_.erase(0, end + 1);
    if (!line) continue;
    if (const auto* done = std::get_if<traces::StepMetrics>(&*line)) {
      step = done->step;
      loss = done->loss;
      samples_per_second = done->samples_per_second;
      if (recent.size() == kRecent) recent.erase(recent.begin());
      recent.push_back(done->seconds);
    } else if (const auto* held_out = std::get_if<traces::Accuracy>(&*line)) {
      accuracy = held_out->share;
    }
  }
}

void add_planning_options(Arguments& args) {
  args.add()(
      "planning",
      "when the layout's planner plans: inline (default): every rank before a step; live: rank 0 "
      "while earlier steps train, and a step whose plan is late uses the layout's own order; "
      "replay: read the plans from --plans",
      cxxopts::value<std::string>())("planning-seconds",
                                     "with --planning live: seconds for a plan (default 1)",
                                     cxxopts::value<std::string>())(
      "plans", "file of plans: written by --planning live, read by replay",
      cxxopts::value<std::string>());
}

void pass_on(const Arguments& args, std::initializer_list<const char*> options,
             std::vector<std::string>& worker) {
  for (const char* option : options) {
    if (!args.has(option)) continue;
    worker.push_back(std::string("--") + option);
    worker.push_back(args.text(option));
  }
}

void add_planning_arguments(const Arguments& args, std::vector<std::string>& worker) {
  pass_on(args, {"planning", "planning-seconds", "plans"}, worker);
}

void add_bad_step_options(Arguments& args) {
  const auto text = [] { return cxxopts::value<std::string>(); };
  args.add()("spikes",
             "what follows when a step's loss or gradient norm jumps: ignore (default); skip: "
             "leave the update out; rewind: back to a checkpoint, and on with the samples after "
             "that step; stop",
             text())(
      "spike-loss",
      "factor on the median loss above which a step is a spike (default 2); 0: not judged",
      text())("spike-norm", "the same for the gradient norm before clipping (default 4)", text())(
      "spike-window", "number of the steps whose median it is (default 64)", text())(
      "non-finite",
      "what follows when a step has non-finite values: skip (default), rewind or stop", text())(
      "max-skips", "stop after so many skipped steps in a row (default 100); 0: never", text())(
      "max-rewinds", "stop at a bad step after so many rewinds (default 3)", text())(
      "rewind-every", "steps between the checkpoints to which the run rewinds (default 100)",
      text());
}

void add_bad_step_arguments(const Arguments& args, std::vector<std::string>& worker) {
  pass_on(args,
          {"spikes", "spike-loss", "spike-norm", "spike-window", "non-finite", "max-skips",
           "max-rewinds", "rewind-every"},
          worker);
}

namespace {

Seconds median(std::vector<Seconds> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// Whether the layouts differ only in how blocks are split over stages.
bool same_but_split(Layout a, Layout b) {
  for (Layout* layout : {&a, &b})
    for (ModuleLayout& grid : layout->modules) grid.blocks.clear();
  return a == b;
}

// The layout of the run that wrote `file`, if it and its costs are the same but for the split.
std::optional<Layout> split_of_run(const std::string& file, const Layout& layout,
                                   const PlannerCosts& costs) {
  if (!std::filesystem::exists(file)) return {};
  const Scenario earlier = read_scenario_file(file);
  if (!earlier.layout || !is_split(earlier, *earlier.layout) || earlier.planner_costs != costs ||
      !same_but_split(*earlier.layout, layout))
    return {};
  return earlier.layout;
}

}  // namespace

std::string give_scenario(const Scenario& scenario, const Layout& layout,
                          const HardwareProfile& profile, const RunFolder& claim) {
  Scenario chosen = scenario;
  chosen.search.reset();
  chosen.layout.reset();
  if (claim.earlier() == EarlierRun::resume && !is_split(scenario, layout))
    chosen.layout = split_of_run(claim.paths().scenario(), layout, scenario.planner_costs);
  if (!chosen.layout) store_planned(layout, balanced_plan(scenario, layout, profile), chosen);
  const std::string path = claim.given_scenario();
  write_file(path, movable_text(chosen, std::filesystem::current_path()));
  return path;
}

LaunchResult launch_with_progress(const LaunchOptions& options, const std::string& label,
                                  const std::string& folder, std::int64_t steps,
                                  const std::optional<Seconds>& predicted) {
  constexpr double kApart = 1.5;  // of measured and predicted steps, to be mentioned
  bool warned = false;
  MetricsTail tail(folder);
  tail.update();
  Progress progress(label);
  LaunchOptions with_tick = options;
  with_tick.label = label;
  if (label == "run")
    with_tick.way_on = [&]() -> std::string {
      std::error_code none;
      const bool saved = !std::filesystem::is_empty(RunPaths{folder}.checkpoints(), none) && !none;
      return saved ? "--resume continues from the last checkpoint" : "no checkpoint was saved yet";
    };
  with_tick.tick = [&] {
    tail.update();
    std::string detail = "step " + std::to_string(tail.step + 1) + "/" + std::to_string(steps);
    if (tail.step >= 0)
      detail += "  loss " + number_text(tail.loss, 4) + "  " +
                number_text(tail.samples_per_second, 0) + " samples/s";
    if (predicted && !tail.recent.empty())
      detail += "  " + seconds_text(tail.recent.back()) + "/step (predicted " +
                seconds_text(*predicted) + ")";
    if (tail.accuracy >= 0) detail += "  held-out " + percent_text(tail.accuracy);
    if (!warned && predicted && tail.recent.size() == MetricsTail::kRecent) {
      warned = true;
      const double times = median(tail.recent) / *predicted;
      if (times > kApart || times < 1 / kApart)
        std::cerr << (isatty(STDERR_FILENO) ? "\r\033[K" : "") << label << ": steps take "
                  << number_text(times, 2)
                  << " times as long as predicted: `polyphony profile` measures this machine, and "
                     "--profile predicts from it\n";
    }
    progress.show(
        static_cast<double>(tail.step + 1) / static_cast<double>(std::max<std::int64_t>(1, steps)),
        detail);
  };
  return launch(with_tick);
}

}  // namespace polyphony::sim
