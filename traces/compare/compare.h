// Measured steps of a layout, each beside the prediction of its own Program (batches differ, and with a planner
// the order of ops): step time and where it went, medians over the steps.
//   forward, backward (both halves), recompute: the compute stream at work on them. What a backward
//     op computes again is part of it; recompute is of ops that do nothing else
//   optimizer: the update, and the step scalars (loss, global norm) that it waits for
//   idle: of the compute stream, step - all of the above; waiting inside an op is idle (activity.h)
//   exchange: time in which messages (pipeline and bridge) of the rank were under way, overlaps
//     counted once
//   all_reduce: likewise for the gradients' collectives on their own stream
//   host: likewise copies of activations to the host's memory and back
// exchange, all_reduce and host may overlap compute: only the other parts and idle add up to the step.
// Relative errors are (predicted - measured) / measured.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "shared/program/program.h"
#include "shared/program/timeline.h"
#include "traces/compare/shared_cores.h"
#include "traces/compare/spread.h"

namespace polyphony::traces {

enum class Part : std::uint8_t {
  forward,
  backward,
  recompute,
  optimizer,
  idle,
  exchange,
  all_reduce,
  host
};
inline constexpr std::size_t kParts = 8;
const char* name(Part part);
// Of the phases of a compute op.
Part part_of(Phase phase);

using PartTimes = std::array<Seconds, kParts>;  // by Part

// By rank.
std::vector<PartTimes> part_times(const Program& program, const Timeline& timeline);
PartTimes mean(const std::vector<PartTimes>& ranks);
// All parts, but recomputation where no rank has any of its own (recomputed layers are then part of
// their backward), and copies to hosts where there are none.
std::vector<Part> parts_shown(const std::vector<PartTimes>& ranks);
// The rank whose compute stream idles least (the lowest of equals): what it does bounds the step.
Rank critical_rank(const std::vector<PartTimes>& ranks);

struct PartComparison {
  Part part = Part::forward;
  Seconds predicted{}, measured{};
  std::optional<double> error;  // none when nothing was measured
  double share_error = 0;       // (predicted - measured) / measured step
};

// Whether a step is as predicted. Repeats that differ by more than the bar can refute a prediction,
// not confirm it: unknown.
enum class Verdict : std::uint8_t { within, outside, unknown };

struct Comparison {
  Seconds predicted_step{};  // median
  Spread measured_step;
  Spread alike;  // the measured steps as if all were of the batch whose prediction is the median
  double step_error = 0;
  std::vector<PartComparison> average;  // over ranks, by Part
  Rank critical;                        // of the measured steps
  std::vector<CoreShare> shared_cores;  // ranks that did not have their core to themselves
  std::vector<PartComparison> on_critical;

  double repeatability() const { return alike.repeatability(); }
  // By |step error| against max(bar, twice the repeatability).
  Verdict verdict(double bar) const;
};

struct ComparedStep {
  const Program& program;
  const Timeline &predicted, &measured;  // complete
};
// At least one step, all of as many ranks.
Comparison compare(const std::vector<ComparedStep>& steps);

}  // namespace polyphony::traces
