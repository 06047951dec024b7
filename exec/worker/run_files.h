// The files a training run leaves in its folder (exec/worker/train.h lists them). Every write is checked:
// a full disk is an error that names the file.
#pragma once

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "exec/worker/train.h"

namespace polyphony::exec {

class MetricsFile {
 public:
  // Goes on after the lines of the first `done` steps: later ones are of steps that were lost with
  // a killed run. No folder: nothing is written. Ranks other than 0 write nothing.
  MetricsFile(const std::string& folder, Rank rank, std::int64_t done);
  void step(std::int64_t step, const StepScalars& scalars, double rate, Seconds seconds,
            int samples);
  void accuracy(std::int64_t step, double accuracy, int held_out);

 private:
  void line(const std::string& text);
  std::string path_;
  std::ofstream file_;
};

// One traced step of this rank, on rank 0's clock. Its ops are counted in the rank's own Program.
struct TracedStep {
  std::int64_t step = 0;
  std::vector<OpTime> times;
};
// Writes trace/step-<n>.rank-<r>.json, and on rank 0 trace/batches.jsonl. Old traces of the folder
// are removed first by rank 0. `whole`: a step's Program of all ranks, whose op ids traces have.
void write_traces(const std::string& folder, Rank rank, const std::vector<TracedStep>& steps,
                  const std::function<Program(std::int64_t)>& whole);

}  // namespace polyphony::exec
