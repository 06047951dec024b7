// The losses and times a training run leaves in its folder. Every write is checked: a full disk is an
// error that names the file.
#pragma once

#include <fstream>
#include <string>

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

}  // namespace polyphony::exec
