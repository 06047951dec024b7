// The files a training run leaves in its folder (exec/worker/train.h lists them). Every write is checked:
// a full disk is an error that names the file.
#pragma once

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "exec/worker/train.h"
#include "traces/format/metrics.h"

namespace polyphony::exec {

// traces/format/metrics.h has the lines.
class MetricsFile {
 public:
  // Goes on after the lines of the first `done` steps: later ones are of steps that were lost with
  // a killed run. Damaged lines are said on stderr, and the file kept beside the new one. No folder:
  // nothing is written. Ranks other than 0 write nothing.
  MetricsFile(const std::string& folder, Rank rank, std::int64_t done);
  void write(const traces::MetricsLine& line);
  void sync() const;  // what was written outlives a crash

 private:
  std::string path_;
  std::ofstream file_;
};

// One traced step of this rank, on rank 0's clock. Its ops are counted in the rank's own Program.
struct TracedStep {
  std::int64_t step = 0;
  std::vector<OpTime> times;
};
// Writes trace/step-<n>.rank-<r>.json, and on rank 0 trace/batches.jsonl and, where any was planned live,
// trace/plans.bin.
void write_traces(const std::string& folder, Rank rank, const std::vector<TracedStep>& steps,
                  const std::function<WholeStep(std::int64_t)>& whole);

}  // namespace polyphony::exec
