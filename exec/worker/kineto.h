// Records training steps with Kineto, PyTorch's profiler, which is part of LibTorch: one file per
// step and rank, kineto/step-<n>.rank-<r>.json.gz in the run's folder. It contains
//   - the operators of all threads of the rank with their input shapes; on a CUDA device also
//     kernels, copies and calls of the runtime;
//   - an annotation for each op of the rank's Program (exec/runner/op_annotation.h) and one for the
//     step, ProfilerStep#N, as PyTorch's own profiler writes;
//   - distributedInfo, and the key "polyphony", by which `polyphony calibrate` reads the ops
//     (traces/kineto/profiled_ops.h).
// kineto/batches.jsonl has the batches of the recorded steps (rank 0).
//
// A recorded step begins and ends alone: no other step is queued on the device, and all ranks have
// prepared their profilers. What the profiler costs is part of the times that it records.
//
// Kineto records a whole process, so no two ranks may be threads of one while one of them records.
//
// If a file cannot be written (full disk), no further ones are tried. Training continues, and the
// run fails with the reason after everything else has been saved.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <optional>
#include <string>

#include "exec/data/dataset.h"
#include "exec/runner/runner.h"
#include "exec/transport/communicator.h"
#include "exec/worker/step_list.h"
#include "shared/files/run_paths.h"
#include "traces/format/op_journal.h"

namespace polyphony::exec {

class KinetoRecorder {
 public:
  // Records the steps of the list. Records nothing without a folder.
  KinetoRecorder(std::string folder, StepList steps, Transport& transport, const Dataset& dataset,
                 torch::Device device);
  ~KinetoRecorder();  // drops a step that has not ended
  KinetoRecorder(const KinetoRecorder&) = delete;
  KinetoRecorder& operator=(const KinetoRecorder&) = delete;

  bool records(std::int64_t step) const { return !paths_.folder.empty() && steps_.contains(step); }
  // Before a recorded step. Collective.
  void begin(std::int64_t step);
  // After the step, on the same thread: waits for the device, stops the profiler and writes the
  // file. `ops`: number of the rank's ops. `late`: the plan of the step was late.
  void end(Runner& runner, std::size_t ops, bool late);
  // Throws InputError if a file could not be written. Call it when the run ends.
  void finish() const;

 private:
  void add_batch();

  RunPaths paths_;
  StepList steps_;
  Transport& transport_;
  const Dataset& dataset_;
  torch::Device device_;
  std::int64_t step_ = -1;  // which is being recorded; -1: none
  bool running_ = false;    // the profiler
  traces::ClockSample clock_{};
  std::optional<at::RecordFunction> annotation_;  // of the step
  std::string batches_;  // content of batches.jsonl, the newest step first; on rank 0
  std::string failed_;   // why a file could not be written
};

}  // namespace polyphony::exec
