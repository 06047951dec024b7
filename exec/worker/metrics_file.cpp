#include "exec/worker/metrics_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "shared/error.h"
#include "shared/files/files.h"
#include "shared/files/run_paths.h"
#include "shared/files/whole.h"

namespace polyphony::exec {
namespace {

// Returns an unused file name next to the file.
std::string unused(const std::string& path) {
  for (int i = 1;; ++i)
    if (std::string name = path + ".damaged-" + std::to_string(i); !std::filesystem::exists(name))
      return name;
}

}  // namespace

MetricsFile::MetricsFile(const std::string& folder, Rank rank, std::int64_t done,
                         std::int64_t rewinds)
    : folder_(folder) {
  if (!folder.empty() && rank.value == 0) path_ = RunPaths{folder}.metrics();
  begin(done, rewinds);
}

void MetricsFile::begin(std::int64_t done, std::int64_t rewinds) {
  if (path_.empty()) return;
  traces::Metrics kept;
  if ((done > 0 || rewinds > 0) && std::filesystem::exists(path_))
    kept = traces::metrics_until(read_records(path_), done, rewinds);
  if (!kept.damage.empty()) {
    const std::string aside = unused(path_);
    std::filesystem::rename(path_, aside);
    for (const std::string& what : kept.damage)
      std::cerr << "polyphony-worker: " << path_ << ": " << what << "\n";
    std::cerr << "polyphony-worker: " << path_
              << ": continuing with its complete lines; the damaged file is kept as " << aside
              << std::endl;
  }
  if (file_.is_open()) file_.close();
  write_file(path_, kept.text);
  file_.open(path_, std::ios::app);
  if (!file_) throw InputError(path_, "", "cannot be opened for writing", "choose another folder");
  // Only an evaluation whose checkpoint is still there can be the best one.
  best_.reset();
  patience_ = {};
  bad_steps_ = traces::bad_steps_of(kept);
  const std::vector<std::int64_t> saved = steps_in(RunPaths{folder_}.checkpoints());
  for (const traces::MetricsLine& line : kept.lines) {
    const auto* held_out = std::get_if<traces::Accuracy>(&line);
    if (held_out && held_out->loss) patience_.add(*held_out->loss);
    if (!held_out || !held_out->loss || !std::isfinite(*held_out->loss) ||
        !std::binary_search(saved.begin(), saved.end(), held_out->step))
      continue;
    if (!best_ || *held_out->loss < best_->loss) best_ = {held_out->step, *held_out->loss};
  }
  events_.emplace(folder_, Rank(0), done, kept.lines);
}

void MetricsFile::write(const traces::MetricsLine& line) {
  bad_steps_.add(line);
  if (path_.empty()) return;
  file_ << traces::to_line(line) << '\n' << std::flush;
  if (!file_)
    throw InputError(path_, "", "cannot be written",
                     "free some disk space or choose another folder");
  events_->write(line);
}

std::vector<std::string> MetricsFile::flush() {
  if (path_.empty()) return {};
  return {path_, events_->flush()};
}

std::optional<BestEvaluation> agreed_best(Control& control,
                                          const std::optional<BestEvaluation>& first) {
  torch::Tensor values = torch::zeros({3}, torch::kFloat64);
  if (first)
    values = torch::tensor({1.0, static_cast<double>(first->step), first->loss}, torch::kFloat64);
  control.sum(values);
  const double* v = values.const_data_ptr<double>();
  if (v[0] == 0) return {};
  return BestEvaluation{static_cast<std::int64_t>(v[1]), v[2]};
}

Patience agreed_patience(Control& control, const Patience& first) {
  torch::Tensor values = torch::zeros({2}, torch::kFloat64);
  if (std::isfinite(first.least))
    values = torch::tensor({first.least, static_cast<double>(first.since)}, torch::kFloat64);
  control.sum(values);
  const double* v = values.const_data_ptr<double>();
  return v[0] == 0 && v[1] == 0 ? Patience{} : Patience{v[0], static_cast<int>(v[1])};
}

}  // namespace polyphony::exec
