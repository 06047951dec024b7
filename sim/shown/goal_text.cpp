#include "sim/shown/goal_text.h"

#include <iostream>

#include "sim/console/console.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {
namespace {

std::string value_text(Objective objective, double value) {
  switch (objective) {
    case Objective::step:
    case Objective::p95:
      return seconds_text(Seconds(value));
    case Objective::memory:
      return bytes_text(Bytes(static_cast<std::int64_t>(value)));
    case Objective::days:
      return number_text(value, value < 10 ? 2 : 1);
    case Objective::dollars:
    case Objective::tokens_per_gpu:
      return count_text(static_cast<std::int64_t>(value));
  }
  return "";
}

std::string heading(Objective objective) {
  switch (objective) {
    case Objective::tokens_per_gpu:
      return "tokens/s/GPU";
    case Objective::dollars:
      return "USD";
    case Objective::step:
      return "step time";
    case Objective::days:
    case Objective::p95:
    case Objective::memory:
      return name(objective);
  }
  return "";
}

// What the best row's days consist of.
void print_campaign(const Goal& goal, const Campaign& campaign) {
  std::string text = "First row: " + count_text(static_cast<std::int64_t>(campaign.steps)) +
                     " steps for " + count_text(static_cast<std::int64_t>(goal.tokens)) +
                     " tokens take " + number_text(campaign.days(), 2) + " days, " +
                     percent_text(1 - campaign.checkpoints.efficiency) +
                     " of them lost to failures and checkpoints (one of " +
                     seconds_text(campaign.checkpoint) + " every " +
                     number_text(campaign.checkpoints.interval.count() / 60, 1) + " min)";
  if (campaign.dollars > 0)
    text += "; " + count_text(static_cast<std::int64_t>(campaign.dollars)) + " USD";
  std::cout << paragraph(text + ".");
}

}  // namespace

void print_goal(const GoalSweep& answer) {
  const VariantSweep& best = answer.best();
  const Goal& goal = answer.goal;
  if (answer.reached.empty() || answer.plain()) return;
  const bool two = goal.objectives.size() == 2;
  std::vector<std::string> header{"nodes", "GPUs", "batch"};
  for (const Objective objective : goal.objectives) header.push_back(heading(objective));
  const bool step_said = wants(goal, Objective::step), memory_said = wants(goal, Objective::memory);
  if (!step_said) header.emplace_back("step time");
  if (!memory_said) header.emplace_back("memory");
  Table table(header);
  std::vector<std::string> words;
  for (const Reached& reached : answer.reached) {
    const VariantSweep& of = answer.sweeps[reached.sweep];
    const Candidate& c = answer.candidate(reached);
    std::vector<std::string> row{count_text(of.variant.nodes),
                                 count_text(of.scenario.cluster.ranks()),
                                 count_text(of.variant.global_batch)};
    for (std::size_t i = 0; i < goal.objectives.size(); ++i)
      row.push_back(value_text(goal.objectives[i], reached.values[i]));
    if (!step_said) row.push_back(seconds_text(c.figures.step));
    if (!memory_said) row.push_back(bytes_text(c.figures.needed_memory()));
    table.add(row);
    words.push_back(layout_words(of.scenario.model, c.layout, of.scenario.cluster));
  }
  std::cout << (two ? "\nPareto front: no other layout found is better than a row in both\n"
                    : "\nThe best layout of each choice, the best first\n")
            << table.text_with("layout", words, screen_columns());
  if (answer.reached.front().campaign) print_campaign(goal, *answer.reached.front().campaign);
  if (answer.sweeps.size() > 1)
    std::cout << "\nRanking for " << counted(best.variant.nodes, "node", "nodes")
              << " and a batch of " << count_text(best.variant.global_batch) << ":\n";
}

}  // namespace polyphony::sim
