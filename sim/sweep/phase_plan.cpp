#include "sim/sweep/phase_plan.h"

#include <algorithm>
#include <numeric>

#include "sim/text/layout_words.h"

namespace polyphony::sim {
namespace {

template <class Of>
double sum(const std::vector<PhaseCost>& phases, const Of& of) {
  return std::accumulate(phases.begin(), phases.end(), 0.0,
                         [&](double before, const PhaseCost& phase) { return before + of(phase); });
}

}  // namespace

PhaseCost phase_cost(const std::string& phase, const GoalSweep& found) {
  PhaseCost cost;
  cost.phase = phase;
  const Scenario& scenario = found.best().scenario;
  cost.ranks_word = ranks_word(scenario.cluster);
  cost.steps = scenario.training.steps;
  cost.ranks = scenario.cluster.ranks();
  if (found.reached.empty()) return cost;
  const Reached& best = found.reached.front();
  const Candidate& layout = found.candidate(best);
  cost.layout = layout_words(scenario.model, layout.layout, scenario.cluster);
  cost.step = layout.figures.step;
  cost.simulated = layout.simulated;
  if (best.campaign) {
    cost.steps = best.campaign->steps;
    cost.time = best.campaign->total;
    cost.campaign = true;
  } else {
    cost.time = cost.step * cost.steps;
  }
  cost.dollars = scenario.cluster.dollars_per_rank_hour * cost.rank_hours();
  return cost;
}

bool PhasePlan::complete() const {
  return phases.size() >= expected &&
         std::all_of(phases.begin(), phases.end(),
                     [](const PhaseCost& phase) { return phase.fits(); });
}

double PhasePlan::days() const {
  return sum(phases, [](const PhaseCost& phase) { return phase.days(); });
}

double PhasePlan::rank_hours() const {
  return sum(phases, [](const PhaseCost& phase) { return phase.rank_hours(); });
}

double PhasePlan::dollars() const {
  const bool known = std::all_of(phases.begin(), phases.end(),
                                 [](const PhaseCost& phase) { return phase.dollars > 0; });
  return known ? sum(phases, [](const PhaseCost& phase) { return phase.dollars; }) : 0;
}

}  // namespace polyphony::sim
