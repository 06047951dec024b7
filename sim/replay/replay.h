// Replays a measured run, as it was and with something changed: `polyphony replay`.
//   Every traced step is replayed with its own times (traces/replay/measured_step.h), so what was
//   slow in a step stays slow in both replays. Results are medians over the steps. One step is
//   shown in detail: the median step of the changed replay. For a changed scenario each step's
//   batch is lowered again; if the data are the same, it is the batch of the run.
//
//   interval   for the median step of the changed run. Variances of logarithms add up: the effects
//              of the profile's errors, repriced in both replays (what stays as it was measured
//              does not move); what the model does not cover, layout_error for every doubling by
//              which the layouts differ (shared/chance/belief.h), at least for the share of time
//              that was not measured; and the jitter of the replayed steps, as of two medians
//   path       seconds on the critical path by class; they add up to the step, so their differences
//              explain its difference
//
// Not modeled: links that are shared differently than when they were measured, caches, ranks that
// newly share a core.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/chance/belief.h"
#include "sim/prediction/predict.h"
#include "traces/compare/compare.h"
#include "traces/compare/idle.h"
#include "traces/evidence/measurement.h"
#include "traces/replay/critical_path.h"
#include "traces/replay/measured_step.h"

namespace polyphony::sim {

// Fewest steps for a replay: the median of fewer says nothing about jitter.
inline constexpr std::size_t kLeastReplayed = 3;

struct ReplayChange {
  std::vector<std::string> said{};     // the changes as on the command line: "cluster.…=1GBps"
  std::optional<Scenario> scenario{};  // changed, with a legal layout; none: as measured
  HardwareProfile profile{};           // prices the changed scenario
  std::vector<traces::Speedup> faster{};
  bool changes() const { return scenario || !faster.empty(); }
};

// Consecutive ops of one class on one rank, on the critical path.
struct PathStretch {
  std::string label;
  Rank rank;
  Seconds start{}, end{};
  std::uint32_t ops = 0;
};

struct ReplayedRun {
  std::string layout;
  traces::Spread steps;
  traces::Machine machine;  // on which it was replayed
  Program program;          // of the step shown in detail
  Timeline timeline;
  std::vector<traces::PartTimes> parts;  // by rank
  traces::IdleTimes idle{};              // mean over ranks
  std::vector<PathStretch> path;
  traces::Mixture mixture;  // over all steps
  Bytes peak_memory{};      // predicted, of the rank that needs most
};

// Seconds on the critical paths before and after the change, for one class of ops.
struct PathDifference {
  std::string label;
  Seconds before{}, after{};
  Seconds difference() const { return after - before; }
};

struct ReplayAnswer {
  std::string source, profile;
  std::vector<std::string> said;  // the changes, as on the command line
  traces::Spread measured;
  double replay_error = 0;  // (replayed unchanged - measured) / measured
  ReplayedRun before;
  std::optional<ReplayedRun> after;
  // For the changed step, if there is one.
  Belief belief;
  double jitter = 0;                        // part of belief.residual
  std::vector<PathDifference> differences;  // the largest first
  std::vector<std::string> notes;
};

// Throws InputError if there are too few steps.
void require_replayable(const traces::Measurement& measured);

// Replays a run. `profile`: prices the run as it was measured. Throws InputError for too few steps,
// a class that no op has, or a change that cannot be lowered; returns Infeasible if the cluster
// lacks a link.
std::variant<ReplayAnswer, Infeasible> replay(const traces::Measurement& measured,
                                              const HardwareProfile& profile,
                                              const ReplayChange& change);

}  // namespace polyphony::sim
