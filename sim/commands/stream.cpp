#include "sim/commands/stream.h"

#include <algorithm>
#include <iostream>

#include "shared/data/batch_json.h"
#include "shared/statistics.h"
#include "sim/answer_json/answers_json.h"
#include "sim/console/console.h"
#include "sim/shown/profile_text.h"

namespace polyphony::sim {
namespace {

std::string describe(const StreamSample& sample) {
  std::string text = "sample " + std::to_string(sample.id) + " (";
  for (std::size_t i = 0; i < sample.tokens.size(); ++i)
    text += std::string(i ? ", " : "") + name(sample.tokens[i].first) + " " +
            count_text(sample.tokens[i].second);
  return text + " tokens; " + bytes_text(sample.held) + " of it)";
}

std::vector<std::string> quantile_names() {
  return {std::begin(kStreamQuantileNames), std::end(kStreamQuantileNames)};
}

// A row of sorted values.
template <class Value, class Text>
void add_row(Table& table, const std::string& name, const std::vector<Value>& values,
             const Text& text) {
  std::vector<std::string> row{name};
  for (const double q : kStreamQuantiles)
    row.push_back(stream_reaches(values.size(), q) ? text(nearest_rank(values, q)) : "-");
  row.push_back(text(values.back()));
  table.add(std::move(row));
}

// Seconds and bubbles.
void print_steps(const BatchStream& stream) {
  std::vector<std::string> head = quantile_names();
  head.insert(head.begin(), "");
  head.push_back("largest");
  Table table(head);
  add_row(table, "step", stream.sorted_steps(), [](Seconds time) { return seconds_text(time); });
  const auto share = [](double value) { return percent_text(value); };
  add_row(table, "bubbles, mean of ranks", stream.sorted_bubbles(&Bubbles::mean), share);
  add_row(table, "  of it communication", stream.sorted_bubbles(&Bubbles::communication), share);
  add_row(table, "bubbles, worst rank", stream.sorted_bubbles(&Bubbles::worst), share);
  std::cout << table.text();
}

void print_memory(const BatchStream& stream) {
  std::vector<std::string> head = quantile_names();
  head.insert(head.begin(), "memory of stage");
  head.insert(head.end(), {"largest", "of device"});
  Table table(head);
  for (std::size_t stage = 0; stage < stream.stages.size(); ++stage) {
    const std::vector<Bytes> peaks = stream.sorted_peaks(stage);
    std::vector<std::string> row{stream.stages[stage]};
    for (const double q : kStreamQuantiles)
      row.push_back(stream_reaches(peaks.size(), q) ? bytes_text(nearest_rank(peaks, q)) : "-");
    row.push_back(bytes_text(peaks.back()));
    row.push_back(stream.device.value ? percent_text(static_cast<double>(peaks.back().value) /
                                                         static_cast<double>(stream.device.value),
                                                     0)
                                      : "?");
    table.add(std::move(row));
  }
  std::cout << table.text();
}

void print_risk(const BatchStream& stream, int steps) {
  const MemoryRisk risk = memory_risk(stream, steps);
  const auto share = [](double p) {
    return p > 0 && p < 1e-4 ? std::string("below 0.01 %") : percent_text(p, 2);
  };
  std::cout << "\nout of memory: " << risk.exceeded << " of "
            << counted(static_cast<std::int64_t>(stream.batches.size()), "batch", "batches")
            << "; in " << counted(steps, "step", "steps") << ": " << share(risk.in_run)
            << " as seen, at most " << share(risk.in_run_most) << " (95 % bound of "
            << percent_text(risk.per_step_most, 2) << " a step), " << share(risk.in_run_tail)
            << " if the largest peaks have an exponential tail (assumed)\n";
}

}  // namespace

void add_stream_options(Arguments& args) {
  args.add()(
      "batches",
      "predict so many batches of the data: percentiles of step, bubbles and memory, the risk of "
      "running out of memory, and which samples are to blame",
      cxxopts::value<int>()->default_value("0"))(
      "steps", "with --batches: steps of the run that the risk is for; default: training/steps",
      cxxopts::value<int>()->default_value("0"));
}

int answer_stream(const Arguments& args, const Scenario& scenario, const Layout& layout,
                  const HardwareProfile& profile) {
  if (args.integer("batches") < 1)
    throw InputError("--batches", "", "at least one batch is needed", "a number such as 1000");
  const int steps = args.integer("steps") > 0 ? args.integer("steps") : scenario.training.steps;
  StreamOptions options;
  options.batches = static_cast<std::size_t>(args.integer("batches"));
  options.jobs = args.jobs();
  const auto copies =
      std::min(options.batches, static_cast<std::size_t>(std::max(1, options.jobs)));
  require_memory(scenario, layout,
                 {.predictor = options.predictor, .copies = static_cast<int>(copies)});
  BatchStream stream;
  {
    Progress progress("batches");
    options.progress = [&](double share) { progress.show(share); };
    stream = predict_stream(scenario, layout, profile, options);
  }
  if (stream.batches.empty())
    throw NoAnswer(ExitCode::infeasible, scenario.file, "",
                   stream.failed.empty() ? "?" : stream.failed.front());
  const StreamBatch& worst = stream.worst();
  if (args.json()) {
    std::cout << to_json(stream, steps).dump(2) << "\n";
  } else {
    std::cout << counted(static_cast<std::int64_t>(stream.batches.size()), "batch", "batches")
              << " estimated (" << describe(profile) << ")"
              << (stream.planner.empty() ? "" : ", each planned by " + stream.planner) << "\n\n";
    print_steps(stream);
    std::cout << "\n";
    print_memory(stream);
    std::cout << "\nlargest peak: batch " << worst.number << ", " << stream.stages[worst.worst]
              << ", " << bytes_text(stream.peak(worst)) << "\n";
    for (const StreamSample& sample : worst.samples) std::cout << "  " << describe(sample) << "\n";
    print_risk(stream, steps);
  }
  for (const std::string& failure : stream.failed) std::cerr << failure << "\n";
  return static_cast<int>(stream.peak(worst) > stream.device ? ExitCode::infeasible : ExitCode::ok);
}

}  // namespace polyphony::sim
