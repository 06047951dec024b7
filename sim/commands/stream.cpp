#include "sim/commands/stream.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "shared/scenario/batch_json.h"
#include "shared/statistics.h"
#include "sim/answers/jitter.h"
#include "sim/answers/stream.h"
#include "sim/commands/console.h"
#include "traces/compare/spread.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

constexpr double kQuantiles[] = {0.5, 0.95, 0.999};
constexpr const char* kKeys[] = {"p50", "p95", "p99.9"};

std::vector<Seconds> sorted_steps(const BatchStream& stream) {
  std::vector<Seconds> steps;
  for (const StreamBatch& batch : stream.batches) steps.push_back(batch.step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<Bytes> sorted_peaks(const BatchStream& stream, std::size_t stage) {
  std::vector<Bytes> peaks;
  for (const StreamBatch& batch : stream.batches) peaks.push_back(batch.peaks[stage]);
  std::sort(peaks.begin(), peaks.end());
  return peaks;
}

const StreamBatch& worst_batch(const BatchStream& stream) {
  return *std::max_element(
      stream.batches.begin(), stream.batches.end(),
      [&](const StreamBatch& a, const StreamBatch& b) { return stream.peak(a) < stream.peak(b); });
}

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
    const std::vector<Bytes> peaks = sorted_peaks(stream, stage);
    std::vector<std::string> row{stream.stages[stage]};
    for (const double q : kQuantiles)
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
            << count_text(static_cast<std::int64_t>(stream.batches.size())) << " batches; in "
            << count_text(steps) << " steps: " << share(risk.in_run) << " as seen, at most "
            << share(risk.in_run_most) << " (95 % bound of " << percent_text(risk.per_step_most, 2)
            << " a step), " << share(risk.in_run_tail)
            << " if the largest peaks have an exponential tail (assumed)\n";
}

json to_json(const BatchStream& stream, const HardwareProfile& profile, Predictor predictor,
             int steps) {
  const std::vector<Seconds> times = sorted_steps(stream);
  json step = {{"largest_seconds", times.back().count()}}, stages = json::array(),
       samples = json::array();
  for (std::size_t i = 0; i < std::size(kQuantiles); ++i)
    if (reaches(times.size(), kQuantiles[i]))
      step[std::string(kKeys[i]) + "_seconds"] = nearest_rank(times, kQuantiles[i]).count();
  for (std::size_t stage = 0; stage < stream.stages.size(); ++stage) {
    const std::vector<Bytes> peaks = sorted_peaks(stream, stage);
    json row = {{"stage", stream.stages[stage]}, {"largest_bytes", peaks.back().value}};
    for (std::size_t i = 0; i < std::size(kQuantiles); ++i)
      if (reaches(peaks.size(), kQuantiles[i]))
        row[std::string(kKeys[i]) + "_bytes"] = nearest_rank(peaks, kQuantiles[i]).value;
    stages.push_back(row);
  }
  const StreamBatch& worst = worst_batch(stream);
  for (const StreamSample& sample : worst.samples) {
    json tokens;
    for (const auto& [modality, count] : sample.tokens) tokens[name(modality)] = count;
    samples.push_back({{"id", sample.id}, {"tokens", tokens}, {"held_bytes", sample.held.value}});
  }
  const MemoryRisk risk = memory_risk(stream, steps);
  return {{"batches", stream.batches.size()},
          {"profile", profile.name},
          {"stack", profile.stack.name},
          {"predictor", predictor == Predictor::simulate ? "simulate" : "estimate"},
          {"step", step},
          {"stages", stages},
          {"device_bytes", stream.device.value},
          {"worst",
           {{"batch", worst.number},
            {"stage", stream.stages[worst.worst]},
            {"peak_bytes", stream.peak(worst).value},
            {"samples", samples}}},
          {"out_of_memory",
           {{"batches", risk.exceeded},
            {"steps", steps},
            {"per_step", risk.per_step},
            {"per_step_most", risk.per_step_most},
            {"per_step_tail", risk.per_step_tail},
            {"in_run", risk.in_run},
            {"in_run_most", risk.in_run_most},
            {"in_run_tail", risk.in_run_tail}}},
          {"failed", stream.failed}};
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
  BatchStream stream;
  {
    Progress progress("batches");
    options.progress = [&](double share) { progress.show(share); };
    stream = predict_stream(scenario, layout, profile, options);
  }
  if (stream.batches.empty()) {
    std::cerr << scenario.file << ": " << (stream.failed.empty() ? "?" : stream.failed.front())
              << "\n";
    return static_cast<int>(ExitCode::infeasible);
  }
  const StreamBatch& worst = worst_batch(stream);
  if (args.json()) {
    std::cout << to_json(stream, profile, options.predictor, steps).dump(2) << "\n";
  } else {
    const std::vector<Seconds> times = sorted_steps(stream);
    std::cout << count_text(static_cast<std::int64_t>(stream.batches.size()))
              << " batches estimated (" << describe(profile) << "): step ";
    for (const double q : kQuantiles)
      std::cout << (q > kQuantiles[0] ? ", " : "") << quantile_text(times, q);
    std::cout << "\n\n";
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
