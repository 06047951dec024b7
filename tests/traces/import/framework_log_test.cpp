#include "traces/import/framework_log.h"

#include <doctest/doctest.h>

#include <sstream>

#include "shared/error.h"
#include "traces/evidence/steady_steps.h"

namespace polyphony::traces {
namespace {

std::string megatron_line(int iteration, double ms) {
  std::ostringstream out;
  out << " [2026-04-13 23:41:12] iteration " << iteration
      << "/    1000 | consumed samples:          160 | elapsed time per iteration (ms): " << ms
      << " | throughput per GPU (TFLOP/s/GPU): 392.1 | learning rate: 1.5E-04 | global batch size: "
         "  "
         " 16 | lm loss: 1.047E+01 | loss scale: 1.0 | grad norm: 2.918 | number of skipped "
         "iterations:   0 | number of nan iterations:   0 |\n";
  return out.str();
}

std::string refusal(const std::string& text) {
  try {
    read_framework_log(text, "run.log");
  } catch (const InputError& error) {
    return error.what();
  }
  return "read";
}

}  // namespace

TEST_CASE("a log of Megatron: steps, loss, throughput, largest memory of any rank") {
  const std::string text =
      "building GPT model ...\n" + megatron_line(10, 1147.5) +
      "[Rank 0] (after 10 iterations) memory (MB) | allocated: 100.5 | max allocated: 1024.0 | "
      "reserved: 1536.0 | max reserved: 2048.0\n"
      "[Rank 4] (after 10 iterations) memory (MB) | allocated: 90.5 | max allocated: 1536.0 | "
      "reserved: 1600.0 | max reserved: 1700.0\n" +
      megatron_line(20, 1000) + "some other line\n";
  const FrameworkLog log = read_framework_log(text, "run.log");
  CHECK(log.framework == Framework::megatron);
  REQUIRE(log.attempts.size() == 1);
  REQUIRE(log.attempts[0].size() == 2);
  const LoggedStep& second = log.attempts[0][1];
  CHECK(second.step == 20);
  CHECK(second.steps == 10);
  CHECK(second.line == 5);
  CHECK(second.time == Seconds(1));
  CHECK(second.teraflops_per_rank == 392.1);
  CHECK(second.loss == 10.47);
  CHECK(second.global_batch == 16);
  CHECK(log.allocated == Bytes(std::int64_t{1536} << 20));
  CHECK(log.reserved == Bytes(std::int64_t{2048} << 20));
  CHECK(log.notes.empty());
}

TEST_CASE("Megatron-Bridge's short lines count if there are no long ones") {
  const FrameworkLog log = read_framework_log(
      "main/0 Step Time : 125.37s GPU utilization: 20.9MODEL_TFLOP/s/GPU\n"
      "main/0 Step Time : 2.25s GPU utilization: 1156.2MODEL_TFLOP/s/GPU\n",
      "run.log");
  REQUIRE(log.attempts.at(0).size() == 2);
  CHECK(log.attempts[0][1].step == 2);
  CHECK(log.attempts[0][1].time == Seconds(2.25));
  CHECK(log.attempts[0][1].teraflops_per_rank == 1156.2);
}

TEST_CASE("a log of torchtitan: tokens per second, with color codes, from several ranks") {
  const std::string text =
      "[rank0]:[titan] 2026-02-10 18:00:00,123 - root - INFO - \x1b[31mstep:  1  \x1b[32mloss: "
      "12.25  \x1b[33mmemory: 40.00GiB(50.47%)  \x1b[34mtps: 100  tflops: 5.0  mfu: 0.51%\x1b[39m\n"
      "[rank0]:[titan] - INFO - step: 10  loss:  8.50  grad_norm: 1.25  memory: 48.00GiB(60.00%)  "
      "tps: 5,762  tflops: 295.44  mfu: 29.87%\r\n"
      "[rank1]:[titan] - INFO - step: 10  loss:  8.50  memory: 47.00GiB(59%)  tps: 5,000  tflops: "
      "295.44  mfu: 29.87%\n";
  const FrameworkLog log = read_framework_log(text, "run.log");
  CHECK(log.framework == Framework::torchtitan);
  REQUIRE(log.attempts.at(0).size() == 2);
  CHECK(log.attempts[0][0].loss == 12.25);
  CHECK(log.attempts[0][1].tokens_per_second_per_rank == 5762);
  CHECK(log.attempts[0][1].steps == 9);
  REQUIRE(log.other_ranks.contains(1));
  CHECK(log.other_ranks.at(1)[0].tokens_per_second_per_rank == 5000);
  CHECK_FALSE(log.allocated);
  CHECK(log.reserved == Bytes(std::int64_t{48} << 30));
  // 5,762 tokens a second and rank, 4 ranks, 46,096 tokens a step: 46,096 / 4 / 5,762 = 2 s.
  CHECK(time_of(log.attempts[0][1], {.tokens = 46096, .samples = 0, .ranks = 4})->count() ==
        doctest::Approx(2));
  CHECK_FALSE(time_of(log.attempts[0][1], {}));
}

TEST_CASE("a log of DeepSpeed: rates, phases, memory") {
  const std::string timer =
      "[2026-11-07 01:55:23,714] [INFO] [timer.py:260:stop] epoch=0/micro_step=40/global_step=10, "
      "RunningAvgSamplesPerSec=25.0, CurrSamplesPerSec=32.0, MemAllocated=4.32GB, "
      "MaxMemAllocated=38.5GB\n";
  const FrameworkLog rates = read_framework_log(timer, "run.log");
  CHECK(rates.framework == Framework::deepspeed);
  CHECK(rates.attempts.at(0).at(0).step == 10);
  CHECK(rates.allocated == Bytes(std::int64_t{77} << 29));
  // 64 samples at 32 a second.
  CHECK(time_of(rates.attempts[0][0], {.tokens = 0, .samples = 64, .ranks = 0}) == Seconds(2));

  const std::string phases =
      "[INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | fwd_microstep: 1.0 | bwd_microstep: "
      "2.0 "
      "| bwd_inner_microstep: 1.5 | bwd_allreduce_microstep: 0.5 | step_microstep: 3.0\n"
      "[INFO] [logging.py:96:log_dist] [Rank 0] time (ms) | fwd: 500 | bwd: 1250 | bwd_inner: 1000 "
      "| "
      "bwd_allreduce: 250 | step: 250\n"
      "MA 17.0 GB         Max_MA 19.0 GB         CA 20.0 GB         Max_CA 21 GB\n";
  const FrameworkLog breakdown = read_framework_log(phases, "run.log");
  REQUIRE(breakdown.attempts.at(0).size() == 1);
  const LoggedStep& step = breakdown.attempts[0][0];
  CHECK(step.rank == 0);
  // fwd + bwd + step; bwd_inner and bwd_allreduce are parts of bwd.
  CHECK(step.time == Seconds(2));
  CHECK(step.phases.at("bwd_allreduce") == Seconds(0.25));
  CHECK(breakdown.reserved == Bytes(std::int64_t{21} << 30));
  // Both lines, as DeepSpeed prints them: the rate gives the time of the step, the breakdown its
  // phases.
  const FrameworkLog both = read_framework_log(timer + phases, "run.log");
  REQUIRE(both.attempts.at(0).size() == 1);
  CHECK(both.attempts[0][0].samples_per_second == 32);
  CHECK(both.attempts[0][0].phases.at("bwd_allreduce") == Seconds(0.25));
}

TEST_CASE("a restart begins another attempt; Megatron-DeepSpeed's double lines are one step") {
  const std::string text = megatron_line(10, 900) + megatron_line(20, 500) +
                           megatron_line(30, 510) +
                           "epoch=0/micro_step=30/global_step=30, RunningAvgSamplesPerSec=1, "
                           "CurrSamplesPerSec=1, MemAllocated=1GB, MaxMemAllocated=2GB\n" +
                           megatron_line(20, 950) + megatron_line(30, 505);
  const FrameworkLog log = read_framework_log(text, "run.log");
  CHECK(log.framework == Framework::megatron);
  REQUIRE(log.attempts.size() == 2);
  CHECK(log.attempts[0].size() == 3);
  CHECK(log.attempts[1].size() == 2);
  REQUIRE(log.notes.size() == 1);
  CHECK(log.notes[0] == "run.log:5: restarted, step 20 after 30");
  // The first line of each attempt is warm-up: 500, 510, 505 ms remain, their median is 505;
  // distances 5, 5, 0: spread 1.4826 · 5 / 505.
  const auto steady = steady_steps(log.attempts, {});
  REQUIRE(steady);
  CHECK(steady->step.count() == doctest::Approx(0.505));
  CHECK(steady->used == 3);
  CHECK(steady->left_out == 2);
  CHECK(steady->spread == doctest::Approx(1.4826 * 5 / 505));
}

TEST_CASE("warm-up lines are omitted while they are slower than the second half") {
  std::string text;
  const double times[] = {9000, 3000, 1500, 1000, 1002, 998, 1000, 1001};
  for (int i = 0; i < 8; ++i) text += megatron_line(i + 1, times[i]);
  // Second half: 1002, 998, 1000, 1001: median 1000.5, distances 1.5, 2.5, 0.5, 0.5; three
  // deviations are 4.4 ms, 1 % of it is more: 1010.5. 3000 and 1500 are slower, 1000 is not.
  const auto steady = steady_steps(read_framework_log(text, "run.log").attempts, {});
  CHECK(steady->left_out == 3);
  CHECK(steady->step == Seconds(1));
  // A later checkpoint is kept, and does not change the median.
  text += megatron_line(9, 60000);
  CHECK(steady_steps(read_framework_log(text, "run.log").attempts, {})->step.count() ==
        doctest::Approx(1.0005));
  // A single line is used.
  CHECK(steady_steps(read_framework_log(megatron_line(1, 750), "run.log").attempts, {})->step ==
        Seconds(0.75));
}

TEST_CASE("truncated and garbled lines are reported, and a log with many of them is rejected") {
  std::string text;
  for (int i = 1; i <= 12; ++i) text += megatron_line(i, 1000);
  // Truncated inside the number of the last line.
  const std::string cut = text + " iteration       13/    1000 | elapsed time per iteration (ms): ";
  const FrameworkLog log = read_framework_log(cut, "run.log");
  CHECK(log.attempts.at(0).size() == 12);
  REQUIRE(log.notes.size() == 1);
  CHECK(log.notes[0] == "run.log: omitted 1 garbled step lines: line 13");
  // Truncated between its digits: 1000 ms have become 10.
  const FrameworkLog shorter = read_framework_log(cut + "10", "run.log");
  CHECK(shorter.attempts.at(0).size() == 12);
  CHECK(shorter.notes == log.notes);
  const std::string mixed =
      "iteration 1/ 10 | elapsed time per iteration (ms): iteration\n"
      "iteration 1/ 10 | elapsed time per iteration (ms): nan |\n" +
      megatron_line(2, 1000);
  CHECK(refusal(mixed).find("2 of 3 step lines cannot be parsed") != std::string::npos);
  CHECK(refusal(mixed).find("run.log:1") != std::string::npos);
  CHECK(refusal("nothing\nat all\n").find("contains no line of a training step") !=
        std::string::npos);
  CHECK(refusal("").find("contains no line of a training step") != std::string::npos);
  CHECK(refusal(megatron_line(1, 10) +
                "step: 1  loss: 2.0  memory: 1.00GiB(1%)  tps: 5  tflops: 1  "
                "mfu: 1%\n")
            .find("lines of two frameworks, torchtitan from line 2") != std::string::npos);
  // A line with an invalid time counts as garbled.
  CHECK(refusal(megatron_line(1, -5)).find("contains no line") != std::string::npos);
}

}  // namespace polyphony::traces
