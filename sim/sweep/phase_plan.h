// What a training run in phases takes (shared/scenario_io/phases.h): of each phase the best layout
// that a sweep found, its steps, time and cost, and the sums.
//   time    step time × training.steps; if the goal states tokens, that of the campaign
//           (shared/goal/campaign.h), which includes failures
//   hours   time × allocated ranks: whole nodes count
// Not included, unless the goal states tokens: checkpoints, evaluations, failures, and the start of
// each phase.
#pragma once

#include <string>
#include <vector>

#include "sim/sweep/goal_sweep.h"

namespace polyphony::sim {

struct PhaseCost {
  std::string phase;       // name
  std::string layout;      // in words; empty: no layout fits
  std::string ranks_word;  // what the cluster's ranks are called: "GPUs" or "ranks"
  Seconds step{};
  bool simulated = false;  // step: simulated, not only estimated
  double steps = 0;
  Seconds time{};
  int ranks = 0;          // allocated
  double dollars = 0;     // 0: the cluster has no price
  bool campaign = false;  // time includes failures and checkpoints
  bool fits() const { return !layout.empty(); }
  double days() const { return time.count() / 86400; }
  double rank_hours() const { return time.count() / 3600 * ranks; }
};
// Returns what one phase takes with the best layout of its sweep.
PhaseCost phase_cost(const std::string& phase, const GoalSweep& found);

struct PhasePlan {
  std::vector<PhaseCost> phases;
  std::size_t expected = 0;  // phases of the scenario; more than were answered if it was stopped
  bool complete() const;     // every phase has a layout
  double days() const;       // of all phases, one after the other
  double rank_hours() const;
  double dollars() const;  // 0: a phase has no price
};

}  // namespace polyphony::sim
