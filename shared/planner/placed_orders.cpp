#include "shared/planner/placed_orders.h"

#include <algorithm>

namespace polyphony {
std::vector<Actions> actions_of(const StageGraph& graph, const PlacedOrders& orders) {
  std::vector<Actions> result;
  for (const auto& order : orders) {
    result.emplace_back();
    for (const Placed& action : order)
      result.back().push_back(graph.action(action.direction, action.stage, action.place));
  }
  return result;
}

std::vector<int> microbatches_of(const StepCosts& costs, const std::vector<Actions>& orders) {
  std::vector<int> result;
  std::vector<bool> seen(static_cast<std::size_t>(costs.microbatches));
  const auto add = [&](int k) {
    if (!seen[static_cast<std::size_t>(k)]) result.push_back(k);
    seen[static_cast<std::size_t>(k)] = true;
  };
  for (const Actions& actions : orders)
    for (const Action& action : actions)
      if (is_forward(action) && action.branch + std::size_t{1} == costs.branches.size() &&
          action.stage == 0 && action.work >= 0 && action.work < costs.branches.back().works())
        add(costs.branches.back().microbatch_of[static_cast<std::size_t>(action.work)]);
  for (int k = 0; k < costs.microbatches; ++k) add(k);
  return result;
}

std::optional<PlacedOrders> placed_of(const StageGraph& graph, const std::vector<Actions>& orders) {
  std::vector<std::vector<int>> place_of;  // by branch, work
  for (const std::vector<int>& works : graph.work_at) {
    place_of.emplace_back(works.size());
    for (std::size_t p = 0; p < works.size(); ++p)
      place_of.back()[static_cast<std::size_t>(works[p])] = static_cast<int>(p);
  }
  std::vector<std::size_t> first(place_of.size() + 1, 0);  // first stage in the graph, by branch
  for (const StageGraph::Stage& stage : graph.stages) first[stage.branch + 1] += 1;
  for (std::size_t b = 0; b < place_of.size(); ++b) first[b + 1] += first[b];

  std::array<std::vector<int>, 3> next;
  for (auto& of : next) of.assign(graph.stages.size(), 0);
  PlacedOrders result(orders.size());
  std::size_t actions = 0;
  for (std::size_t r = 0; r < orders.size(); ++r)
    for (const Action& action : orders[r]) {
      if (action.branch >= place_of.size()) return {};
      const std::size_t s = first[action.branch] + action.stage;
      if (s >= first[action.branch + std::size_t{1}] || graph.stages[s].rank != static_cast<int>(r))
        return {};
      const StageGraph::Stage& stage = graph.stages[s];
      if (action.work < 0 || action.work >= stage.works) return {};
      const int place = place_of[action.branch][static_cast<std::size_t>(action.work)];
      const auto add = [&](int direction) {
        const auto d = static_cast<std::size_t>(direction);
        const int at = next[d][s]++;
        if (!stage.runs[d] || at >= stage.works || (direction != kWeight && at != place))
          return false;
        ++actions;
        result[r].push_back({static_cast<std::uint8_t>(d), static_cast<std::uint16_t>(s), at});
        return true;
      };
      const bool part =
          action.kind == ActionKind::backward_input || action.kind == ActionKind::backward_weight;
      if (part && !graph.apart) return {};
      if (is_forward(action) ? !add(kForward) : returns_gradient(action) && !add(kBackward))
        return {};
      const bool weight =
          action.kind == ActionKind::backward || action.kind == ActionKind::backward_weight;
      if (weight && stage.runs[kWeight] && !add(kWeight)) return {};
    }
  if (actions != graph.actions) return {};
  return result;
}

bool fits(const StageGraph& graph, std::size_t rank, const std::vector<Placed>& order) {
  if (!graph.limited) return true;
  std::int64_t held = 0;
  for (const Placed& action : order) {
    const StageGraph::Stage& stage = graph.stages[action.stage];
    const std::int64_t kept = graph.kept[stage.first + static_cast<std::size_t>(action.place)];
    if (action.direction == stage.takes) held += kept;
    if (held > graph.capacity[rank]) return false;
    if (action.direction == stage.gives) held -= kept;
  }
  return true;
}

void turn_round(const StageGraph& mirror, PlacedOrders& orders) {
  for (auto& order : orders) {
    std::reverse(order.begin(), order.end());
    for (Placed& action : order) {
      if (action.direction != kWeight)
        action.direction = static_cast<std::uint8_t>(1 - action.direction);
      action.place = mirror.stages[action.stage].works - 1 - action.place;
    }
  }
}

}  // namespace polyphony
