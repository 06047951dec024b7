// Runs one rank's part of a Program: the same ops, in the same order per stream, that the simulator
// runs.
//   There is one thread per stream; the compute stream runs on the caller's thread. An op starts
//   when its stream reaches it and all ops in its waits_for have ended. Exchanges and collectives
//   block only their own stream.
//
//   On a device that runs asynchronously to the host, each stream is one of the device's, and
//   waiting is done there (exec/runner/device_streams.h). If the transport queues, too, one thread
//   queues all ops. The host then waits once per step: for the loss, the norm and whether all
//   values are finite, which the update reads on the device.
//
//   Chunks (parameters and layers) are made once from the rank's parameter groups and live over all
//   steps. Saved activations may be offloaded to the host: exec/runner/host_tape.h.
//   Emulated compute (Pace): a compute op that ends early sleeps until its stated duration is over
//   (shared/hardware/pace.h).
//
// Errors: LostPeer from the transport, InputError if the device has too few multiprocessors for the
// kernels that wait for other ranks, and any exception an op throws. The first one stops all
// streams of the rank and is rethrown by the step functions; all but LostPeer end all ranks
// (Transport::abort).
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/chunk/chunk.h"
#include "exec/parameters/held_parameters.h"
#include "exec/predicted.h"
#include "exec/transport/communicator.h"
#include "exec/work_input.h"
#include "shared/program/program.h"
#include "shared/program/timeline.h"
#include "shared/scenario/scenario.h"

namespace polyphony::exec {

// Default of RunnerOptions::run_ahead: four boundary tensors of 8,192 rows × 16,384 in bf16, about
// a hundredth of a GPU's memory.
inline constexpr Bytes kRunAhead{std::int64_t{1} << 30};

struct RunnerOptions {
  bool perturb = false;  // tests: see ChunkOptions
  bool check_collectives =
      false;  // compare each compute op's collectives with expand(); tests and the first step
  torch::Device device = torch::kCPU;  // of parameters, activations, and the inputs' tensors
  Bytes run_ahead = kRunAhead;         // exec/runner/run_ahead.h
  // Multiprocessors of the device, which must be enough for every step's kernels
  // (exec/device/room_on_gpu.h); 0: not checked.
  int processors = 0;
  bool pretrained = true;  // begin with the scenario's published weights, if it has any
  bool ranges = false;     // NVTX ranges around ops, for profilers; in GPU builds
  // Called before values and optimizer state change: on a CPU on the update's thread, on a device
  // before the update is queued. Empty: not called.
  std::function<void()> before_update = {};
  // For tests: called on the op's thread, just before it starts and just after it has ended.
  std::function<void(OpId, bool starts)> watch = {};
};

// A step whose loss or gradient norm is larger is not followed by an update, on any rank.
struct StepLimits {
  double loss = std::numeric_limits<double>::infinity();
  double gradient_norm = std::numeric_limits<double>::infinity();
};

// Results of one training step, equal on every rank except for not_finite.
struct StepScalars {
  double loss = 0;           // mean over the global batch's loss tokens
  double gradient_norm = 0;  // before clipping
  bool finite = true;        // loss and gradient norm are finite
  bool skipped = false;      // the update was skipped on all ranks: not finite, or above a limit
  // First op or gradient of this rank with a non-finite value; empty if this rank has none.
  std::string not_finite;
};

class Runner {
 public:
  // `structure`: any Program of the run; its parameter groups and process groups must be the run's.
  // Collective over all ranks (creates the groups).
  Runner(Transport& transport, const Scenario& scenario, const Program& structure,
         const RunnerOptions& options);
  ~Runner();

  using Inputs = std::function<const WorkInput&(WorkId)>;  // called on the compute stream
  // Least durations by op, for emulated compute; empty: no op sleeps.
  using Pace = std::vector<Seconds>;

  // A step in two halves. begin_step() runs the step on a CPU, or queues it on a device, where the
  // next step may begin before end_step() waits for the oldest. At most two steps may be begun at a
  // time. The Program and the inputs' tensors must not change until end_step().
  void begin_step(const Program& program, const Inputs& inputs, double learning_rate,
                  const Pace& pace = {}, const StepLimits& limits = {});
  StepScalars end_step();
  StepScalars train_step(const Program& program, const Inputs& inputs, double learning_rate,
                         const Pace& pace = {});
  // Runs forward passes only. Returns the predictions at all loss rows of the microbatches whose
  // head this rank runs.
  std::map<WorkId, Predicted> evaluate(const Program& program, const Inputs& inputs);

  // Returns when this rank's ops of the step begun last ran, in steady_now()
  // (exec/system/process.h). Ranks of one host share that clock; others are aligned by
  // exec/runner/clock.h. Call before the next begin_step(); waits for a device.
  const std::vector<OpTime>& times();

  std::vector<Chunk*> chunks();  // in parameter-group order
  // Return parameters, gradients and AdamW state in parameter-group order, and the number of
  // updates made.
  std::vector<HeldParameters*> stores();
  std::int64_t updates() const;
  void set_updates(std::int64_t updates);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace polyphony::exec
