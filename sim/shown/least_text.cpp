#include "sim/shown/least_text.h"

#include <algorithm>
#include <numeric>

#include "sim/console/console.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {
namespace {

std::string first_line(const LeastNodes& least, const VariantSweep& of) {
  const Cluster& cluster = of.scenario.cluster;
  std::string text = "At least " + counted(least.nodes, "node", "nodes") + " of " +
                     count_text(cluster.ranks_per_node) + " " + cluster.device.name + " (" +
                     count_text(cluster.ranks()) + ")";
  if (least.nodes > 1)
    text += ": on " + count_text(least.nodes - 1) + ", no layout was found that fits";
  return paragraph(text + ".");
}

// The whole run with the sweep's best layout, if its duration is known.
const Campaign* campaign_of(const GoalSweep& answer, std::size_t sweep) {
  for (const Reached& reached : answer.reached)
    if (reached.sweep == sweep && reached.place == 0 && reached.campaign) return &*reached.campaign;
  return nullptr;
}

}  // namespace

std::string least_text(const LeastNodes& least, const GoalSweep& answer) {
  const bool days = answer.goal.tokens > 0;
  std::vector<std::string> header{"nodes",         "GPUs",         "step time",
                                  "times as fast", "tokens/s/GPU", "memory"};
  if (days) header.insert(header.end(), {"days", "USD"});
  Table table(header);
  std::vector<std::string> words;
  std::vector<std::size_t> order(answer.sweeps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return answer.sweeps[a].variant.nodes < answer.sweeps[b].variant.nodes;
  });
  const VariantSweep* first = nullptr;
  for (const std::size_t s : order) {
    const VariantSweep& of = answer.sweeps[s];
    if (of.sweep.ranked.empty()) continue;
    if (first == nullptr) first = &of;
    const Candidate& best = of.sweep.ranked.front();
    std::vector<std::string> row{
        count_text(of.variant.nodes),
        count_text(of.scenario.cluster.ranks()),
        (best.simulated ? "" : "~") + seconds_text(best.figures.step),
        number_text(first->sweep.ranked.front().figures.step / best.figures.step, 2),
        count_text(static_cast<std::int64_t>(best.figures.tokens_per_second_per_rank)),
        bytes_text(best.figures.needed_memory())};
    if (days) {
      const Campaign* run = campaign_of(answer, s);
      row.push_back(run ? number_text(run->days(), 1) : "");
      row.push_back(run && run->dollars > 0 ? count_text(static_cast<std::int64_t>(run->dollars))
                                            : "");
    }
    table.add(row);
    words.push_back(layout_words(of.scenario.model, best.layout, of.scenario.cluster));
  }
  if (first == nullptr) return "";
  return first_line(least, *first) + "\n" + table.text_with("layout", words, screen_columns()) +
         "\n" +
         paragraph(
             "The fastest layout found on each number of nodes. To rank the layouts on one of "
             "them, ask again with its number: --gpus " +
             std::to_string(least.nodes) + "x" +
             std::to_string(first->scenario.cluster.ranks_per_node) + "x" +
             first->scenario.cluster.device.name + ".");
}

}  // namespace polyphony::sim
