// A sweep for a goal (shared/goal/goal.h): one for each variant of the question, and what their best
// layouts come to.
//   one objective   the best of each variant, the best of all first
//   two             the Pareto front: what nothing known is better than in both, by the first
//                   objective; of one variant, rows that better the second by under 2 % are left
//                   out. Beside memory, each variant is asked again with three quarters of the memory
//                   that its best needed, as long as anything fits
// Days and dollars count failures (shared/goal/campaign.h); a checkpoint holds fp32 master weights and
// AdamW's two moments, 12 bytes a trained parameter.
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
  Bytes limit{};  // of a rank's memory
  Sweep sweep;
};

struct Reached {
  std::size_t sweep = 0, place = 0;  // of GoalSweep::sweeps, of its `ranked`
  std::vector<double> values;        // by the goal's objectives, in their units
  std::optional<Campaign> campaign;  // where the goal says how many tokens
};

struct GoalSweep {
  Goal goal;                         // as it was asked for
  std::vector<VariantSweep> sweeps;  // one at least
  std::vector<Reached> reached;      // best first; empty: nothing fits
  bool stopped = false;
  bool plain() const { return goal == Goal{}; }  // the step of the scenario alone
  const VariantSweep& best() const { return sweeps[reached.empty() ? 0 : reached.front().sweep]; }
  const Candidate& candidate(const Reached& of) const {
    return sweeps[of.sweep].sweep.ranked[of.place];
  }
};

GoalSweep sweep_for_goal(const Scenario& scenario, const HardwareProfile& profile,
                         const SweepOptions& options);

// Which of two values of it is wanted.
bool better(Objective objective, double one, double other);

}  // namespace polyphony::sim
