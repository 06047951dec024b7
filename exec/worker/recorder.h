// Records the traced steps of a rank. A step is written to the rank's journal when it is over
// (traces/format/op_journal.h), so memory does not grow with the number of steps, and a killed run
// keeps them. At the end of the run the journal is converted to trace files and removed.
//   Clocks are compared before the first traced step and after the last one (exec/runner/clock.h).
//   If the journal cannot be written (full disk), recording stops but training continues; the run
//   fails with the reason after everything else has been saved.
#pragma once

#include <cstdint>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/planning/step_data.h"
#include "exec/transport/communicator.h"
#include "shared/files/run_paths.h"
#include "traces/format/op_journal.h"

namespace polyphony::exec {

class Recorder {
 public:
  // Records steps [first, last), of a run that may start at any step. Records nothing without a
  // folder.
  Recorder(std::string folder, std::int64_t first, std::int64_t last, Transport& transport,
           const Dataset& dataset);

  bool records(std::int64_t step) const {
    return !paths_.folder.empty() && step >= first_ && step < last_;
  }
  // Before and after a recorded step. Collective.
  void begin();
  void add(traces::JournalStep step);
  // Writes trace/step-<n>.rank-<r>.json, and on rank 0 trace/plans.bin if steps were planned live.
  // Collective; call after the last recorded step. `whole` returns a recorded step; it is called on
  // all ranks in the same order.
  void finish(const std::function<WholeStep(std::int64_t)>& whole);

 private:
  void open();
  void compare_clocks();
  void write(std::ofstream& file, const std::string& path, const std::string& bytes);

  RunPaths paths_;
  std::int64_t first_, last_;
  Transport& transport_;
  const Dataset& dataset_;
  std::ofstream journal_, batches_;  // batches_: on rank 0
  std::vector<std::int64_t> steps_;
  Seconds took_{};      // time to record the last step
  std::string failed_;  // the file that could not be written
};

}  // namespace polyphony::exec
