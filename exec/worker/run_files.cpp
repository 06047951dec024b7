#include "exec/worker/run_files.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "shared/error.h"
#include "shared/scenario/batch_json.h"
#include "traces/format/chrome_json.h"

namespace polyphony::exec {
namespace {

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file)
    throw InputError(path, "", "cannot be written",
                     "free some disk space or choose another --out folder");
}

// Whole lines of the first `done` steps. An accuracy after n steps says n, the loss of the n-th
// step n - 1.
std::string lines_until(const std::string& path, std::int64_t done) {
  std::ifstream file(path, std::ios::binary);
  std::string kept;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json value = nlohmann::json::parse(line, nullptr, false);
    if (!value.is_object() || !value.contains("step") || !value["step"].is_number_integer())
      continue;
    const auto step = value["step"].get<std::int64_t>();
    if (step < done || (step == done && value.contains("accuracy"))) kept += line + '\n';
  }
  return kept;
}

nlohmann::json number(double value) {  // JSON has no NaN; readers take null for "not a number"
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

}  // namespace

MetricsFile::MetricsFile(const std::string& folder, Rank rank, std::int64_t done) {
  if (folder.empty() || rank.value != 0) return;
  path_ = folder + "/metrics.jsonl";
  const std::string partial = path_ + ".partial";
  write_file(partial, done == 0 ? std::string() : lines_until(path_, done));
  std::filesystem::rename(partial, path_);
  file_.open(path_, std::ios::app);
  if (!file_)
    throw InputError(path_, "", "cannot be opened for writing", "choose another --out folder");
}

void MetricsFile::line(const std::string& text) {
  if (path_.empty()) return;
  file_ << text << '\n' << std::flush;
  if (!file_)
    throw InputError(path_, "", "cannot be written",
                     "free some disk space or choose another --out folder");
}

void MetricsFile::step(std::int64_t step, const StepScalars& scalars, double rate, Seconds seconds,
                       int samples) {
  line(nlohmann::json{{"step", step},
                      {"loss", number(scalars.loss)},
                      {"gradient_norm", number(scalars.gradient_norm)},
                      {"skipped", !scalars.finite},
                      {"learning_rate", rate},
                      {"seconds", seconds.count()},
                      {"samples_per_second", samples / seconds.count()}}
           .dump());
}

void MetricsFile::accuracy(std::int64_t step, double accuracy, int held_out) {
  line(nlohmann::json{{"step", step}, {"accuracy", accuracy}, {"held_out", held_out}}.dump());
}

void write_traces(const std::string& folder, Rank rank, const std::vector<TracedStep>& steps,
                  const std::function<Program(std::int64_t)>& whole) {
  if (folder.empty() || steps.empty()) return;
  const std::filesystem::path trace = std::filesystem::path(folder) / "trace";
  std::string batches;
  for (const TracedStep& traced : steps) {
    const Program program = whole(traced.step);
    Timeline timeline;
    timeline.ops = traced.times;
    for (OpTime& time : timeline.ops) {
      time.op = OpId(time.op.value + program.ops_of(rank).begin);
      timeline.makespan = std::max(timeline.makespan, time.end);
    }
    const std::string name =
        "step-" + std::to_string(traced.step) + ".rank-" + std::to_string(rank.value) + ".json";
    write_file((trace / name).string(),
               traces::write_trace(program, timeline, traces::TraceKind::measured,
                                   static_cast<std::uint64_t>(traced.step)));
    batches += to_json_line(static_cast<std::uint64_t>(traced.step), program.batch) + "\n";
  }
  if (rank.value == 0) write_file((trace / "batches.jsonl").string(), batches);
}

}  // namespace polyphony::exec
