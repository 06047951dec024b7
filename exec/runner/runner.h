// Runs one rank's part of a Program: the same ops, in the same per-stream order, that the simulator
// plays.
//   Tapes that go to the host and back: exec/runner/host_tape.h.
//   A thread per stream; the compute stream runs on the caller's thread. An op starts when its
//   stream reaches it and all of waits_for have ended; exchanges and collectives block only their
//   own stream. On a device that runs behind the host a stream is one of the device's, and waiting
//   is done there (exec/runner/device_streams.h); where the transport queues, too, one thread queues
//   all ops. The host then waits once a step: for the loss, the norm and whether all is finite, which the update
//   reads on the device.
//   Chunks (parameters and layers) are made once from the rank's parameter groups and
//   live over steps. Paced: a compute op takes max(real, virtual) time, by sleeping; messages and
//   collectives stay real.
// Errors: LostPeer from the transport, whatever an op throws; the first one stops all streams of
// the rank and is rethrown by step().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/layers/chunk.h"
#include "exec/parameters/held_parameters.h"
#include "exec/transport/communicator.h"
#include "exec/work_input.h"
#include "shared/program/program.h"
#include "shared/program/timeline.h"
#include "shared/scenario/scenario.h"

namespace polyphony::exec {

// Four boundaries of 8,192 rows of 16,384 in bf16; a hundredth of a GPU's memory.
inline constexpr Bytes kRunAhead{std::int64_t{1} << 30};

struct RunnerOptions {
  bool perturb = false;  // tests: see ChunkOptions
  bool check_collectives =
      false;  // compare what every compute op issued with expand(); for tests and the first step
  torch::Device device = torch::kCPU;  // of parameters, activations, and the inputs' tensors
  Bytes run_ahead = kRunAhead;         // exec/runner/run_ahead.h
  bool messages_apart = false;         // shared/program/message_order.h; the same on all ranks
  bool ranges = false;                 // NVTX ranges of ops, for profilers; in builds for GPUs
  // Tests: called on the op's thread, just before it starts and just after it has ended.
  std::function<void(OpId, bool starts)> watch = {};
};

// What one step of training gave. Equal on every rank.
struct StepScalars {
  double loss = 0;           // mean over the global batch's loss tokens
  double gradient_norm = 0;  // before clipping
  bool finite = true;        // false: the update was skipped everywhere
  std::string not_finite;    // where this rank saw it first; empty: another rank did
};

class Runner {
 public:
  // `structure`: any Program of the run; its parameter groups and groups are the run's. Collective
  // over all ranks (makes groups).
  Runner(Transport& transport, const Scenario& scenario, const Program& structure,
         const RunnerOptions& options);
  ~Runner();

  using Inputs = std::function<const WorkInput&(WorkId)>;  // called on the compute stream
  // Virtual durations by op, for paced ranks; empty: not paced.
  using Pace = std::vector<Seconds>;

  // A step in two halves, at most two steps begun at a time: begin_step() runs it on a CPU and queues it on a device,
  // where the next one may begin before end_step() waits for the oldest. Program and the inputs' tensors stay as
  // they are until then.
  void begin_step(const Program& program, const Inputs& inputs, double learning_rate,
                  const Pace& pace = {});
  StepScalars end_step();
  StepScalars train_step(const Program& program, const Inputs& inputs, double learning_rate,
                         const Pace& pace = {});
  // Forward only: the predicted label of every loss row of the work items whose head this rank
  // runs.
  std::map<WorkId, torch::Tensor> evaluate(const Program& program, const Inputs& inputs);

  // When this rank's ops ran, in steady_now() (exec/system/process.h); ranks of one host agree,
  // others are aligned by exec/runner/clock.h. Before the next step; waits for a device.
  const std::vector<OpTime>& times();

  std::vector<Chunk*> chunks();  // in parameter-group order
  // Parameters, gradients and AdamW state, in parameter-group order, and how many updates were
  // made.
  std::vector<HeldParameters*> stores();
  std::int64_t updates() const;
  void set_updates(std::int64_t updates);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace polyphony::exec
