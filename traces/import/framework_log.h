// Reads the step lines that training frameworks print, from a log that may also contain any other
// lines.
//
//   Megatron-LM, Megatron-Bridge   "iteration 10/ 50 | consumed samples: … | elapsed time per
//                iteration (ms): 1147.6 | throughput per GPU (TFLOP/s/GPU): 392.1 | … |": the mean
//                over the iterations since the previous line. "Step Time : 5.39s GPU utilization:
//                663.5MODEL_TFLOP/s/GPU" (Megatron-Bridge) counts if there is no such line.
//                "[Rank 0] (after 10 iterations) memory (MB) | allocated: … | max allocated: … |
//                max reserved: …": MiB
//   torchtitan   "step: 10  loss: 8.12  memory: 47.93GiB(50.47%)  tps: 5,762  tflops: 295.44  mfu:
//                29.87%": memory is the maximum reserved; tps is tokens per second and device
//   DeepSpeed    "epoch=0/micro_step=40/global_step=10, RunningAvgSamplesPerSec=…,
//                CurrSamplesPerSec=25.7, MemAllocated=4.32GB, MaxMemAllocated=38.49GB": GiB. With
//                wall_clock_breakdown "[Rank 0] time (ms) | fwd: … | bwd: … | bwd_inner: … |
//                bwd_allreduce: … | step: …"; with see_memory_usage "MA 1.2 GB Max_MA 2.3 GB …"
//
// If a log contains lines of both Megatron and DeepSpeed, Megatron's are used (Megatron-DeepSpeed
// prints both). The rank of a line is read from "[rank3]:", "[default3]:" (torchrun), "3:" (srun
// -l) or "[Rank 3]".
//
//   attempt      a new attempt begins where the step numbers of one rank decrease: a restart
//   garbled      step lines that cannot be parsed: truncated at the end of the file, or mixed with
//                the output of another rank. They are reported, and more than a tenth of them is an
//                error. A number at the very end of the file is not used: it may be truncated
//
// Throws InputError with "file:line" if there is no step, if lines of two frameworks are mixed, or
// if a time is not a valid time.
//
// Sources: Megatron-LM training.py training_log, utils.py report_memory; Megatron-Bridge
// train_utils.py; torchtitan components/metrics.py; DeepSpeed utils/timer.py, runtime/utils.py.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shared/enum_names.h"
#include "shared/units.h"

namespace polyphony::traces {

using polyphony::name;  // of the enums below

enum class Framework : std::uint8_t { megatron, torchtitan, deepspeed };
constexpr auto names(Framework) {
  return names_of<Framework>("Megatron", "torchtitan", "DeepSpeed");
}

// The contents of one line, about the steps since the previous line. At least one of `time`,
// `tokens_per_second_per_rank` and `samples_per_second` is present.
struct LoggedStep {
  std::int64_t step = 0;   // the last of these steps
  std::int64_t steps = 1;  // number of steps over which the values are the mean
  int rank = -1;           // the rank that printed the line; -1: unknown
  int line = 0;            // line number, counted from 1
  std::optional<Seconds> time;
  std::optional<double> tokens_per_second_per_rank;
  std::optional<double> samples_per_second;  // over all ranks
  std::optional<double> teraflops_per_rank;  // by the framework's own count
  std::optional<double> loss;
  std::optional<std::int64_t> global_batch;  // samples
  std::map<std::string, Seconds> phases;     // DeepSpeed: "fwd", "bwd", "bwd_allreduce", "step"
};

struct FrameworkLog {
  Framework framework = Framework::megatron;
  // In the order of the log, from the rank that printed the most lines.
  std::vector<std::vector<LoggedStep>> attempts;
  // The same steps as printed by other ranks, by rank; empty if only one rank prints.
  std::map<int, std::vector<LoggedStep>> other_ranks;
  std::optional<Bytes> allocated, reserved;  // maximum over all ranks
  std::vector<std::string> notes;            // omitted, repaired or doubtful lines
};
// Parses a log. `file` is used in messages.
FrameworkLog read_framework_log(const std::string& text, const std::string& file);

}  // namespace polyphony::traces
