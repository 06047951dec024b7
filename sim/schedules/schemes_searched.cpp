// Schedules whose orders are searched (shared/planner/order_search.h).
#include <algorithm>

#include "shared/planner/segment_counts.h"
#include "sim/schedules/stage_splits.h"

namespace polyphony::sim {
namespace {

void search(Arranged& made, const CompareOptions& options, bool split_backwards) {
  limit(made.costs, options);
  SearchBudget budget;
  budget.placements = options.placements;
  budget.apart = split_backwards;
  if (!made.orders.empty()) budget.from = {std::move(made.orders)};
  made.orders.clear();
  auto found = search_order(made.costs, budget);
  if (auto* order = std::get_if<FoundOrder>(&found)) made.orders = std::move(order->orders);
  if (const auto* no = std::get_if<Infeasible>(&found)) made.refusal = no->reason;
}

}  // namespace

// Tries one segment per module, the numbers of segments that balance their times, and two and four
// times these, as far as there are pieces; each with backwards whole and split in two.
Scheme dip(const StageTimes& times, const CompareOptions& options) {
  std::vector<Seconds> mean;
  for (const ModuleTimes& module : times.modules) {
    mean.emplace_back();
    for (const StageCost& cost : module.costs)
      mean.back() += seconds(cost) / static_cast<double>(module.microbatch_of.size());
  }
  std::vector<std::vector<int>> tried = {std::vector<int>(mean.size(), 1)};
  for (const int times_as_many : {1, 2, 4}) {
    std::vector<int> counts = segment_counts(mean);
    for (std::size_t i = 0; i < counts.size(); ++i)
      counts[i] = std::clamp(counts[i] * times_as_many, 1,
                             std::max(1, times.modules[i].pieces / options.ranks));
    if (counts != tried.back()) tried.push_back(counts);
  }
  Scheme scheme{"dip", {}};
  for (const std::vector<int>& rounds : tried)
    for (const bool split_backwards : {false, true}) {
      std::string name;
      for (const int one : rounds)
        name += (name.empty() ? "segments " : " + ") + std::to_string(one);
      if (split_backwards) name += ", weight parts later";
      scheme.settings.push_back(
          {name, [rounds, split_backwards, &options](const StageTimes& of) {
             Arranged made{{options.ranks, of.microbatches, {}, {}}, {}, {}};
             for (std::size_t b = 0; b < of.modules.size(); ++b) {
               const ModuleTimes& module = of.modules[b];
               made.costs.branches.push_back(
                   split(module, rounds_of(std::min(options.ranks, module.pieces), rounds[b])));
               if (b + 1 < of.modules.size())
                 made.costs.branches.back().feeds = of.modules.size() - 1;
             }
             search(made, options, split_backwards);
             return made;
           }});
    }
  return scheme;
}

Scheme searched(const std::vector<std::pair<std::string, const ScheduleSetting*>>& from,
                const CompareOptions& options) {
  Scheme scheme{kSearched, {}};
  for (const auto& [name, setting] : from)
    scheme.settings.push_back(
        {"stages of " + name, [base = *setting, &options](const StageTimes& of) {
           Arranged made = base.arrange(of);
           if (!made.costs.branches.empty()) search(made, options, true);
           return made;
         }});
  return scheme;
}

}  // namespace polyphony::sim
