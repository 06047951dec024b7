// A sweep for a goal (shared/goal/goal.h): runs one sweep for each variant of the scenario (number
// of nodes, global batch) and compares the best layouts by the goal's objectives.
//   one objective    the best layout of each variant, best first
//   two objectives   the Pareto front, ordered by the first objective. Within one variant, points
//                    that improve the second objective by less than 2 % are omitted. If memory is
//                    an objective, each variant is repeated with three quarters of the memory that
//                    its best layout needed, as long as some layout fits
//
// Days and dollars include failures (shared/goal/campaign.h). A checkpoint has fp32 master weights
// and AdamW's two moments: 12 bytes per trained parameter.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/goal/campaign.h"
#include "sim/sweep/sweep.h"
#include "sim/sweep/variants.h"

namespace polyphony::sim {

struct VariantSweep {
  Variant variant;
  Scenario scenario;
  Bytes limit{};  // memory of a rank that the sweep was allowed to use
  Sweep sweep;
};

// One point of the result: a layout and its values.
struct Reached {
  std::size_t sweep = 0, place = 0;  // index in GoalSweep::sweeps, and in `ranked` of that sweep
  std::vector<double> values;        // by the goal's objectives, in their units
  std::optional<Campaign> campaign;  // the whole run; set if the goal has a number of tokens
};

struct GoalSweep {
  Goal goal;                         // the requested goal
  std::vector<VariantSweep> sweeps;  // at least one
  std::vector<Reached> reached;      // best first; empty if nothing fits
  bool stopped = false;
  bool plain() const { return goal == Goal{}; }  // no goal: the scenario's step time
  const VariantSweep& best() const { return sweeps[reached.empty() ? 0 : reached.front().sweep]; }
  const Candidate& candidate(const Reached& of) const {
    return sweeps[of.sweep].sweep.ranked[of.place];
  }
};

// Runs the sweeps of all variants of the scenario's goal.
GoalSweep sweep_for_goal(const Scenario& scenario, const HardwareProfile& profile,
                         const SweepOptions& options);

// Returns whether value `one` of the objective is better than `other`.
bool better(Objective objective, double one, double other);

}  // namespace polyphony::sim
