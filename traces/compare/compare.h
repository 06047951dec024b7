// Compares measured steps of a layout with predictions: step time and its parts, medians over the
// steps. Each step has a prediction of its own Program (batches differ, and with a planner the
// order of ops).
//
//   forward, backward (both halves), recompute: active time of the compute stream in these phases.
//     Recomputation inside a backward op counts as backward; recompute counts ops that only
//     recompute
//   optimizer: the update, and the step scalars (loss, global norm) that it waits for
//   idle: of the compute stream: the step minus all of the above; waiting inside an op is idle
//     (activity.h)
//   exchange: time in which at least one message of the rank (pipeline or bridge) was in transit
//   all_reduce: likewise for the collectives of parameters, on their own stream: all-reduces of
//     gradients; with ZeRO also reduce-scatters and all-gathers
//   host: likewise for copies of activations to the host's memory and back
//
// exchange, all_reduce and host may overlap compute: only the other parts and idle add up to the
// step. Relative errors are (predicted - measured) / measured.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "shared/enum_names.h"
#include "shared/program/program.h"
#include "shared/program/timeline.h"
#include "traces/compare/shared_cores.h"
#include "traces/compare/spread.h"

namespace polyphony::traces {

using polyphony::name;  // of the enums below

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
constexpr auto names(Part) {
  return names_of<Part>("forward", "backward", "recompute", "optimizer", "idle", "exchange",
                        "all-reduce", "host copies");
}
inline constexpr std::size_t kParts = 8;
// Returns the name of a part in tables and on pages. name() is its key in JSON.
constexpr const char* table_name(Part part) {
  return part == Part::exchange     ? "messages in transit"
         : part == Part::all_reduce ? "parameter collectives"
                                    : name(part);
}
// Returns the part to which a compute op of the phase belongs.
Part part_of(Phase phase);

using PartTimes = std::array<Seconds, kParts>;  // by Part

// Returns the parts of the step by rank.
std::vector<PartTimes> part_times(const Program& program, const Timeline& timeline);
PartTimes mean(const std::vector<PartTimes>& ranks);
// Returns the parts to show: all, except recompute if no rank has separate recompute ops, and host
// if there are no copies to host memory.
std::vector<Part> parts_shown(const std::vector<PartTimes>& ranks);
// Returns the rank whose compute stream is idle for the shortest time (the lowest such rank). It
// bounds the step time.
Rank critical_rank(const std::vector<PartTimes>& ranks);

struct PartComparison {
  Part part = Part::forward;
  Seconds predicted{}, measured{};
  std::optional<double> error;  // absent if the measured time is zero
  double share_error = 0;       // (predicted - measured) / measured step
};

// Whether a step is within the tolerance of its prediction (Comparison::verdict()). If repeated
// measurements differ by more than the tolerance, they can refute a prediction but not confirm it:
// the verdict is then unknown.
enum class Verdict : std::uint8_t { within, outside, unknown };

struct Comparison {
  Seconds predicted_step{};  // median over the steps
  Spread measured_step;
  // Of measured steps as if all had equal batches: each is multiplied by the median prediction over
  // its own prediction. Its repeatability is that of the machine, without that of the data.
  Spread of_equal_batches;
  double step_error = 0;                // (predicted - measured) / measured, of the medians
  std::vector<PartComparison> average;  // over ranks, by Part
  Rank critical;                        // of the measured steps
  std::vector<CoreShare> shared_cores;  // ranks that shared their core with another program
  std::vector<PartComparison> on_critical;

  double repeatability() const { return of_equal_batches.repeatability(); }
  // Returns `outside` if |step_error| > max(tolerance, 2 · repeatability()); otherwise `unknown` if
  // repeatability() > tolerance, else `within`.
  Verdict verdict(double tolerance) const;
};

struct ComparedStep {
  const Program& program;
  const Timeline &predicted, &measured;  // complete
};
// Returns the comparison over at least one step. All steps must have the same number of ranks.
Comparison compare(const std::vector<ComparedStep>& steps);

}  // namespace polyphony::traces
