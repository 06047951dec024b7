#include "sim/sweep/variants.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "shared/search/space.h"
#include "shared/validate/validate.h"

namespace polyphony::sim {
namespace {

// Most values of the global batch. More would take too long; those that suit most rank counts come
// first.
constexpr std::size_t kMostBatches = 6;

int odd_part(int number) {
  while (number % 2 == 0) number /= 2;
  return number;
}

// Returns a number in [least, most] that is a multiple of `factor` times the largest possible power
// of two; of several, the nearest to `to`. 0 if there is none.
int suited(int factor, int least, int most, int to) {
  int best = 0;
  for (std::int64_t step = factor; step <= most; step *= 2) {
    const std::int64_t below = to / step * step, above = below + step;
    const bool under = below >= least && below > 0, over = above <= most;
    if (!under && !over) break;
    best = static_cast<int>(under && (!over || to - below <= above - to) ? below : above);
  }
  return best;
}

// Returns values of the global batch within the fraction `share` of the scenario's, which is first.
std::vector<int> batches(const Scenario& scenario, double share) {
  const int written = scenario.data.global_batch;
  std::vector<int> found{written};
  if (share <= 0) return found;
  const Space space(scenario);
  Rejections rejections;
  std::map<int, int> odd;  // part of the language module's ranks: how many divisions have it
  for (const Division& division : space.divisions(rejections))
    ++odd[odd_part(division.ranks[space.language()].count)];
  std::vector<std::pair<int, int>> order;
  for (const auto& [part, count] : odd) order.push_back({-count, part});
  std::sort(order.begin(), order.end());
  for (const auto& [count, part] : order) {
    const int batch = suited(part, static_cast<int>(std::ceil(written * (1 - share))),
                             static_cast<int>(std::floor(written * (1 + share))), written);
    if (batch > 0 && found.size() < kMostBatches &&
        std::find(found.begin(), found.end(), batch) == found.end())
      found.push_back(batch);
  }
  return found;
}

}  // namespace

std::vector<Variant> variants(const Scenario& scenario) {
  std::vector<int> nodes = scenario.goal.nodes;
  if (nodes.empty()) nodes.push_back(scenario.cluster.nodes);
  std::vector<Variant> found;
  for (auto of = nodes.rbegin(); of != nodes.rend(); ++of) {
    const Scenario part = of_variant(scenario, {*of, scenario.data.global_batch});
    for (const int batch : batches(part, scenario.goal.global_batch_within))
      found.push_back({*of, batch});
  }
  return found;
}

Scenario of_variant(Scenario scenario, const Variant& variant) {
  scenario.cluster.nodes = variant.nodes;
  std::erase_if(scenario.cluster.degraded, [&](const Degraded& degraded) {
    return degraded.rank >= scenario.cluster.ranks();
  });
  scenario.data.global_batch = variant.global_batch;
  scenario.goal.nodes.clear();
  scenario.goal.global_batch_within = 0;
  validate(scenario);
  return scenario;
}

}  // namespace polyphony::sim
