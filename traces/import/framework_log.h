// What training frameworks print while they train, as values: the log's text, in any mixture with
// other lines.
//   Megatron-LM, Megatron-Bridge   "iteration 10/ 50 | consumed samples: … | elapsed time per iteration
//                (ms): 1147.6 | throughput per GPU (TFLOP/s/GPU): 392.1 | … |": the mean over the
//                iterations since the line before; "Step Time : 5.39s GPU utilization: 663.5MODEL_TFLOP/s/GPU",
//                Bridge's, counts where there is no such line; "[Rank 0] (after 10 iterations) memory
//                (MB) | allocated: … | max allocated: … | max reserved: …", MiB
//   torchtitan   "step: 10  loss: 8.12  memory: 47.93GiB(50.47%)  tps: 5,762  tflops: 295.44  mfu:
//                29.87%": memory is the most that was reserved, tps tokens a second and device
//   DeepSpeed    "epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=…,
//                CurrSamplesPerSec=25.7, MemAllocated=4.32GB, MaxMemAllocated=38.49GB", GiB; of
//                wall_clock_breakdown "[Rank 0] time (ms) | fwd: … | bwd: … | bwd_inner: … |
//                bwd_allreduce: … | step: …"; of see_memory_usage "MA 1.2 GB Max_MA 2.3 GB …"
// Megatron's lines come before DeepSpeed's where both stand (Megatron-DeepSpeed prints both). Ranks
// are told by "[rank3]:", "[default3]:" (torchrun), "3:" (srun -l) or "[Rank 3]".
//   attempt      a new one where the steps of one rank fall back: a restart
//   garbled      lines of steps that cannot be read: cut by the end of the file, written into each
//                other by two ranks. They are named, and refused where they are more than a tenth. A
//                number that ends where the file does is none
// Errors: InputError with "file:line": no step at all, lines of two frameworks, a time that is none.
// Sources: Megatron-LM training.py training_log, utils.py report_memory; Megatron-Bridge
// train_utils.py; torchtitan components/metrics.py; DeepSpeed utils/timer.py, runtime/utils.py.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shared/units.h"

namespace polyphony::traces {

enum class Framework : std::uint8_t { megatron, torchtitan, deepspeed };
constexpr Framework last_of(Framework) { return Framework::deepspeed; }
const char* name(Framework framework);

// What one line says of the steps since the line before it. One of the first three is there.
struct LoggedStep {
  std::int64_t step = 0;   // the last of them
  std::int64_t steps = 1;  // how many it is the mean of
  int rank = -1;           // that printed it; -1: not said
  int line = 0;            // from 1
  std::optional<Seconds> time;
  std::optional<double> tokens_per_second_per_rank;
  std::optional<double> samples_per_second;  // of all ranks
  std::optional<double> teraflops_per_rank;  // as the framework counts them
  std::optional<double> loss;
  std::optional<std::int64_t> global_batch;  // samples
  std::map<std::string, Seconds> phases;     // DeepSpeed: "fwd", "bwd", "bwd_allreduce", "step"
};

struct FrameworkLog {
  Framework framework = Framework::megatron;
  std::vector<std::vector<LoggedStep>> attempts;  // as printed, of the rank that printed most
  // The same steps as other ranks printed them, by rank: none where one rank speaks for all.
  std::map<int, std::vector<LoggedStep>> other_ranks;
  std::optional<Bytes> allocated, reserved;  // most, of any rank
  std::vector<std::string> notes;            // what was left out, repaired or doubtful
};
FrameworkLog read_framework_log(const std::string& text, const std::string& file);

}  // namespace polyphony::traces
