#include "sim/shown/phase_plan_text.h"

#include <algorithm>

#include "sim/console/console.h"

namespace polyphony::sim {
namespace {

// Days and hours with about three digits.
std::string duration_text(double value) {
  int digits = 0;
  for (double least = 100; value < least && digits < 6; least /= 10) ++digits;
  return number_text(value, digits);
}

std::string dollars_text(double dollars) {
  if (dollars <= 0) return "";
  return dollars >= 100 ? count_text(static_cast<std::int64_t>(dollars)) : number_text(dollars, 2);
}

}  // namespace

std::string phase_plan_text(const PhasePlan& plan) {
  const std::vector<PhaseCost>& phases = plan.phases;
  const bool gpus = std::all_of(phases.begin(), phases.end(),
                                [](const PhaseCost& phase) { return phase.ranks_word == "GPUs"; });
  const bool priced = std::any_of(phases.begin(), phases.end(),
                                  [](const PhaseCost& phase) { return phase.dollars > 0; });
  std::vector<std::string> header{"phase", "step time", "steps", "days",
                                  gpus ? "GPU hours" : "rank hours"};
  if (priced) header.emplace_back("USD");
  Table table(header);
  std::vector<std::string> words;
  const auto add = [&](std::vector<std::string> row, double dollars, const std::string& layout) {
    if (priced) row.push_back(dollars_text(dollars));
    table.add(std::move(row));
    words.push_back(layout);
  };
  for (const PhaseCost& phase : phases) {
    const std::string steps = count_text(static_cast<std::int64_t>(phase.steps));
    if (phase.fits())
      add({phase.phase, (phase.simulated ? "" : "~") + seconds_text(phase.step), steps,
           duration_text(phase.days()), duration_text(phase.rank_hours())},
          phase.dollars, phase.layout);
    else
      add({phase.phase, "-", steps, "-", "-"}, 0, "no layout fits");
  }
  if (plan.complete())
    add({"all", "", "", duration_text(plan.days()), duration_text(plan.rank_hours())},
        plan.dollars(), "one phase after the other");
  const bool campaigns = std::all_of(phases.begin(), phases.end(),
                                     [](const PhaseCost& phase) { return phase.campaign; });
  const bool estimated = std::any_of(phases.begin(), phases.end(), [](const PhaseCost& phase) {
    return phase.fits() && !phase.simulated;
  });
  return "\nThe best layout of each phase\n" + table.text_with("layout", words, screen_columns()) +
         paragraph(campaigns
                       ? "Days include failures and checkpoints, as the goal states them."
                       : "Days are step time × steps: without checkpoints, evaluations, failures "
                         "and the start of each phase.") +
         (estimated ? "~: estimated (longest path), not simulated.\n" : "");
}

}  // namespace polyphony::sim
