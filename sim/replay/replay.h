// A measured run played again, and once more with something changed: what `polyphony replay` says.
//   Every traced step is played with its own times (traces/replay/measured_step.h), so that what was slow in a step
//   stays so in both; steps are given as medians over them. One step, that of the changed median, is shown whole.
//   Of the changed scenario each step's batch is lowered anew: the run's where the data are the same.
//   interval   of the changed run's median step. Logarithms add up: effects of the profile's errors on both sides
//              priced again with them (what was measured as it is does not move); what the model leaves out:
//              layout_error for every doubling by which the layouts differ (shared/chance/belief.h), and at least for
//              the share of time that was not measured; the jitter of the played steps, twice as a median
//   path       seconds of the critical path by class: they add up to the step, so that their differences
//              explain its difference
// Does not model: links that are shared otherwise than they were measured, caches, ranks that share a core anew.
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

// A median of fewer steps says nothing of their jitter.
inline constexpr std::size_t kLeastReplayed = 3;

struct ReplayChange {
  std::vector<std::string> said{};     // "cluster.node.link=1GBps", in words of the command line
  std::optional<Scenario> scenario{};  // with a legal layout; none: as measured
  HardwareProfile profile{};           // that the changed scenario is priced with
  std::vector<traces::Speedup> faster{};
  bool changes() const { return scenario || !faster.empty(); }
};

// Consecutive pieces of the critical path of one class on one rank.
struct PathStretch {
  std::string label;
  Rank rank;
  Seconds start{}, end{};
  std::uint32_t ops = 0;
};

struct ReplayedRun {
  std::string layout;
  traces::Spread steps;
  traces::Machine machine;  // it was played on
  Program program;          // of the step shown
  Timeline timeline;
  std::vector<traces::PartTimes> parts;  // by rank
  traces::IdleTimes idle{};              // mean over ranks
  std::vector<PathStretch> path;
  traces::Mixture mixture;  // over all steps
  Bytes peak_memory{};      // of the worst rank, as the model says
};

// Of the critical paths, by class.
struct PathDifference {
  std::string label;
  Seconds before{}, after{};
  Seconds difference() const { return after - before; }
};

struct ReplayAnswer {
  std::string source, profile;
  std::vector<std::string> said;
  traces::Spread measured;
  double replay_error = 0;  // (replayed alone - measured) / measured
  ReplayedRun before;
  std::optional<ReplayedRun> after;
  // Of the changed step, where there is one.
  Belief belief;
  double jitter = 0;                        // part of belief.residual
  std::vector<PathDifference> differences;  // the largest first
  std::vector<std::string> notes;
};

// InputError: too few steps.
void require_replayable(const traces::Measurement& measured);

// `profile`: that the run is priced with. Errors: InputError for too few steps, a class that is not there, a
// change that cannot be lowered; Infeasible: a link the cluster does not have.
std::variant<ReplayAnswer, Infeasible> replay(const traces::Measurement& measured,
                                              const HardwareProfile& profile,
                                              const ReplayChange& change);

}  // namespace polyphony::sim
