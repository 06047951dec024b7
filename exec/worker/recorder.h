// Records a rank's traced steps. What a step took is in the rank's journal when the step is over
// (traces/format/op_journal.h): memory does not grow with the steps, and a killed run keeps it. When the
// run ends, trace files are made of it and the journal goes.
//   Clocks are compared before the first traced step and after the last one (exec/runner/clock.h).
//   A journal that cannot be written (a full disk) stops the recording, not the training; the run
//   fails with the reason when all else is saved.
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
  // Of steps [first, last) of a run that starts at any. No folder: nothing is recorded.
  Recorder(std::string folder, std::int64_t first, std::int64_t last, Transport& transport,
           const Dataset& dataset);

  bool records(std::int64_t step) const {
    return !paths_.folder.empty() && step >= first_ && step < last_;
  }
  // Of all ranks, before a recorded step and after it.
  void begin();
  void add(traces::JournalStep step);
  // Of all ranks, when no recorded step follows: trace/step-<n>.rank-<r>.json, and on rank 0 trace/plans.bin
  // where any was planned live. `whole`: of a recorded step, asked for on all ranks in the same order.
  void finish(const std::function<WholeStep(std::int64_t)>& whole);

 private:
  void open();
  void compare_clocks();
  void write(std::ofstream& file, const std::string& path, const std::string& bytes);

  RunPaths paths_;
  std::int64_t first_, last_;
  Transport& transport_;
  const Dataset& dataset_;
  std::ofstream journal_, batches_;  // batches: of rank 0
  std::vector<std::int64_t> steps_;
  Seconds took_{};      // to record the last step
  std::string failed_;  // the file that could not be written
};

}  // namespace polyphony::exec
