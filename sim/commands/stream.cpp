#include "sim/commands/stream.h"

#include <algorithm>
#include <iostream>

#include "shared/scenario/batch_json.h"
#include "shared/statistics.h"
#include "sim/answers/answers_json.h"
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

void print_table(const BatchStream& stream) {
  Table table({"stage", "p50", "p95", "p99.9", "largest", "of device"});
  for (std::size_t stage = 0; stage < stream.stages.size(); ++stage) {
    const std::vector<Bytes> peaks = stream.sorted_peaks(stage);
    std::vector<std::string> row{stream.stages[stage]};
    for (const double q : kStreamQuantiles)
      row.push_back(reaches(peaks.size(), q) ? bytes_text(nearest_rank(peaks, q)) : "-");
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
  args.add()("batches",
             "predict so many batches of the data: percentiles of step and memory, the risk of "
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
    const std::vector<Seconds> times = stream.sorted_steps();
    std::cout << counted(static_cast<std::int64_t>(stream.batches.size()), "batch", "batches")
              << " estimated (" << describe(profile) << "): step "
              << quantiles_text(times, {std::begin(kStreamQuantiles), std::end(kStreamQuantiles)})
              << "\n\n";
    print_table(stream);
    std::cout << "\nlargest peak: batch " << worst.number << ", " << stream.stages[worst.worst]
              << ", " << bytes_text(stream.peak(worst)) << "\n";
    for (const StreamSample& sample : worst.samples) std::cout << "  " << describe(sample) << "\n";
    print_risk(stream, steps);
  }
  for (const std::string& failure : stream.failed) std::cerr << failure << "\n";
  return static_cast<int>(stream.peak(worst) > stream.device ? ExitCode::infeasible : ExitCode::ok);
}

}  // namespace polyphony::sim
