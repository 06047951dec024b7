#include "shared/planner/search_keys.h"

#include <algorithm>
#include <numeric>

namespace polyphony {
namespace {

constexpr double kLast = 1e12;  // seconds; later than everything else

Keys empty_keys(const StageGraph& graph) {
  Keys keys;
  keys.alternate = false;
  for (auto& of : keys.of) of.resize(graph.kept.size());
  return keys;
}

}  // namespace

Keys paced_keys(const StageGraph& graph, double stretch, WeightParts weights) {
  Keys keys = empty_keys(graph);
  std::vector<double> release(static_cast<std::size_t>(graph.microbatches) + 1, 0.0);
  for (std::size_t node = 0; node < graph.kept.size(); ++node)
    for (const auto& seconds : graph.seconds)
      release[static_cast<std::size_t>(graph.microbatch[node]) + 1] += seconds[node] / graph.ranks;
  std::partial_sum(release.begin(), release.end(), release.begin());
  std::array<std::vector<double>, 2> way;
  for (auto& of : way) of.assign(graph.kept.size(), 0.0);
  const auto fill = [&](int direction, const StageGraph::Stage& stage) {
    const auto d = std::size_t(direction);
    for (std::size_t node = stage.first; node < stage.first + std::size_t(stage.works); ++node) {
      const int k = graph.microbatch[node];
      double at = direction == kBackward ? way[kForward][node] + graph.seconds[kForward][node] : 0;
      const auto after = [&](std::size_t other) {
        at = std::max(at, way[d][other] + graph.seconds[d][other]);
      };
      const auto after_stage = [&](int other) {
        const StageGraph::Stage& of = graph.stages[std::size_t(other)];
        for (int p = graph.begin(of.branch, k); p < graph.end(of.branch, k); ++p)
          after(of.first + std::size_t(p));
      };
      if (node > stage.first && graph.microbatch[node - 1] == k) after(node - 1);
      if (direction == kForward)
        for (const int from : stage.from) after_stage(from);
      else if (stage.to >= 0)
        after_stage(stage.to);
      way[d][node] = at;
      keys.of[d][node] = release[static_cast<std::size_t>(k)] + stretch * at;
      if (direction == kBackward)
        keys.of[kWeight][node] = keys.of[d][node] + (weights == WeightParts::fill ? kLast : 0);
    }
  };
  for (const StageGraph::Stage& stage : graph.stages) fill(kForward, stage);
  for (std::size_t s = graph.stages.size(); s-- > 0;) fill(kBackward, graph.stages[s]);
  return keys;
}

Keys keys_in_mirror(const StageGraph& graph, const ListSchedule& placed) {
  Keys keys = empty_keys(graph);
  for (const StageGraph::Stage& stage : graph.stages)
    for (int p = 0; p < stage.works; ++p)
      for (const int d : {kForward, kBackward, kWeight}) {
        const auto from = std::size_t(d), to = std::size_t(d == kWeight ? d : 1 - d);
        const std::size_t node = stage.first + std::size_t(p);
        keys.of[to][stage.first + std::size_t(stage.works - 1 - p)] =
            -(placed.start[from][node] + graph.seconds[from][node]);
      }
  return keys;
}

Keys carried_keys(const StageGraph& from, const ListSchedule& placed, const StageGraph& to) {
  Keys keys = empty_keys(to);
  for (const StageGraph::Stage& stage : to.stages)
    for (int p = 0; p < stage.works; ++p) {
      const std::size_t node = stage.first + std::size_t(p);
      const int k = to.microbatch[node];
      const int there = from.begin(stage.branch, k) + p - to.begin(stage.branch, k);
      const int last = std::max(0, from.end(stage.branch, k) - 1);
      const auto at = stage.first + std::size_t(std::min(there, last));
      for (std::size_t d = 0; d < keys.of.size(); ++d) keys.of[d][node] = placed.start[d][at];
    }
  return keys;
}

}  // namespace polyphony
