#include "exec/worker/run_files.h"

#include <filesystem>
#include <iostream>

#include "shared/error.h"
#include "shared/files/files.h"
#include "shared/files/run_paths.h"
#include "shared/files/whole.h"
#include "shared/scenario/batch_json.h"
#include "traces/format/chrome_json.h"

namespace polyphony::exec {
namespace {

// A name beside the file that nothing has yet.
std::string unused(const std::string& path) {
  for (int i = 1;; ++i)
    if (std::string name = path + ".damaged-" + std::to_string(i); !std::filesystem::exists(name))
      return name;
}

}  // namespace

MetricsFile::MetricsFile(const std::string& folder, Rank rank, std::int64_t done) {
  if (folder.empty() || rank.value != 0) return;
  path_ = RunPaths{folder}.metrics();
  traces::Metrics kept;
  if (done > 0 && std::filesystem::exists(path_))
    kept = traces::metrics_until(read_records(path_), done);
  if (!kept.damage.empty()) {
    const std::string aside = unused(path_);
    std::filesystem::rename(path_, aside);
    for (const std::string& what : kept.damage)
      std::cerr << "polyphony-worker: " << path_ << ": " << what << "\n";
    std::cerr << "polyphony-worker: " << path_
              << ": goes on with its whole lines; kept as it was: " << aside << std::endl;
  }
  write_file(path_, kept.text);
  file_.open(path_, std::ios::app);
  if (!file_)
    throw InputError(path_, "", "cannot be opened for writing", "choose another --out folder");
}

void MetricsFile::write(const traces::MetricsLine& line) {
  if (path_.empty()) return;
  file_ << traces::to_line(line) << '\n' << std::flush;
  if (!file_)
    throw InputError(path_, "", "cannot be written",
                     "free some disk space or choose another --out folder");
}

void MetricsFile::sync() const {
  if (!path_.empty()) sync_file(path_);
}

void write_traces(const std::string& folder, Rank rank, const std::vector<TracedStep>& steps,
                  const std::function<WholeStep(std::int64_t)>& whole) {
  if (folder.empty() || steps.empty()) return;
  const RunPaths paths{folder};
  std::error_code failed;
  std::filesystem::create_directories(paths.traces(), failed);
  if (failed)
    throw InputError(paths.traces(), "", "cannot be made: " + failed.message(),
                     "choose another --out folder");
  std::string batches, plans;
  for (const TracedStep& traced : steps) {
    const WholeStep step = whole(traced.step);
    const Program& program = step.program;
    Timeline timeline;
    timeline.ops = traced.times;
    for (OpTime& time : timeline.ops) {
      time.op = OpId(time.op.value + program.ops_of(rank).begin);
      timeline.makespan = std::max(timeline.makespan, time.end);
    }
    write_file(
        paths.trace(traced.step, rank.value),
        traces::write_trace(program, timeline, traces::TraceKind::measured,
                            static_cast<std::uint64_t>(traced.step), step.live && step.live->late));
    if (step.live) plans += plans_entry(*step.live);
    batches += to_json_line(static_cast<std::uint64_t>(traced.step), program.batch) + "\n";
  }
  if (rank.value != 0) return;
  write_file(paths.batches(), batches);
  if (plans.empty())
    std::filesystem::remove(paths.plans(), failed);  // of an earlier part of the run
  else
    write_file(paths.plans(), plans_head() + plans);
}

}  // namespace polyphony::exec
