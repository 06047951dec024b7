// The training loop of one rank: batch -> Program -> step, with metrics, traces, evaluation and
// checkpoints. It writes to the run's folder:
//   scenario.json (rank 0)   the scenario as it is trained, its stages split
//   metrics.jsonl (rank 0)   traces/format/metrics.h
//   events.out.tfevents.*    the same for TensorBoard (rank 0; exec/worker/event_metrics.h)
//   trace/                   batches.jsonl, of live plans plans.bin (rank 0) and, of the traced
//                            steps, step-<n>.rank-<r>.json
//                            (traces/format/chrome_json.h); until the run ends, journals
//                            (exec/worker/recorder.h)
//   kineto/                  profiles by Kineto (exec/worker/kineto.h)
//   checkpoints/             exec/checkpoint/checkpoint.h
//
// Rank 0 claims the folder (shared/files/run_folder.h). Nothing in the folder changes before all
// checks that can fail have passed.
// Learning rate: shared/scenario/learning_rate.h.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "exec/data/dataset.h"
#include "exec/planning/step_data.h"
#include "exec/runner/runner.h"
#include "exec/transport/communicator.h"
#include "exec/worker/bad_steps.h"
#include "exec/worker/device_memory.h"
#include "exec/worker/step_list.h"
#include "shared/files/run_folder.h"
#include "shared/hardware/hardware.h"
#include "shared/plan/plan.h"

namespace polyphony::exec {

// From this number of ranks on, rank 0 plans for all: a rank's planning time grows with the world
// size.
inline constexpr int kPlanForAll = 128;

struct TrainOptions {
  torch::Device device = torch::kCPU;
  std::string out;                // output folder; empty: nothing is written
  std::int64_t steps = 10;        // train until this step is reached
  std::int64_t trace_first = -1;  // traced steps [first, last); -1: none
  std::int64_t trace_last = -1;
  StepList kineto;                  // steps recorded by Kineto
  std::int64_t evaluate_every = 0;  // in steps; 0: never
  int evaluate_samples = 0;         // held-out samples evaluated; 0: all
  bool save_answers = false;        // exec/worker/answers_file.h; needs `out`
  double stop_accuracy = 0;         // stop when an evaluation reaches it; 0: never
  int stop_patience = 0;  // stop after so many evaluations without a lower held-out loss; 0: never
  BadStepPolicy bad_steps;                  // rewind needs `out` and kept checkpoints
  Seconds checkpoint_every{0};              // 0: only at the end (none without `out`)
  int keep_checkpoints = 2;                 // the newest ones; 0: none is written
  bool keep_best = false;                   // also that with the least held-out loss
  EarlierRun earlier = EarlierRun::refuse;  // in `out`; resume: from its newest checkpoint, if any
  // Folder of a run with whose parameters training begins, if it does not resume; empty: none.
  std::string weights_from{};
  int folder_lock = -1;  // inherited from a launcher that has claimed `out`
  bool check_collectives = false;
  Planner planner = Planner::each;  // each: Planner::first from kPlanForAll ranks on
  LiveOptions live;                 // with Planner::live
  std::optional<HardwareProfile>
      pace;  // emulated compute: ops last at least pace_scale times this profile's prediction
  double pace_scale = 1;
  std::optional<BytesPerSecond> send_rate;  // exec/transport/limited.h
  bool ranges = false;                      // RunnerOptions
  bool saves_beside = true;  // checkpoints are written while training goes on, if there is memory
  int ranks_of_host = 1;     // which share its memory
  std::function<bool()> interrupted;  // polled once a step; true on any rank: checkpoint and stop
};

struct TrainResult {
  std::int64_t steps = 0;                         // reached
  double loss = 0;                                // of the last step
  std::optional<double> accuracy, held_out_loss;  // of the last evaluation
  Seconds median_step{};                          // over the steps after the third
  std::int64_t live = 0, late = 0;  // steps planned live; those of them whose plan was late
  bool interrupted = false;
  std::string stopped;    // why a bad step ended the run, which then saves no checkpoint; or empty
  std::string bad_steps;  // traces::BadSteps::text() of the whole run, on rank 0
  std::optional<DeviceMemory> memory;  // of this rank
};

// Collective over all ranks of the transport. Needs a runnable layout.
TrainResult train(Transport& transport, const Scenario& scenario, const Layout& layout,
                  const Dataset& dataset, const TrainOptions& options);
// The same with the plan of the layout, as prepare() made it.
TrainResult train(Transport& transport, const Scenario& scenario, const Layout& layout,
                  const Plan& plan, const Dataset& dataset, const TrainOptions& options);

}  // namespace polyphony::exec
