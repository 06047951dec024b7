#include "shared/planner/placed_orders.h"

#include <algorithm>

namespace polyphony {
namespace {

constexpr int kForward = StageGraph::kForward, kBackward = StageGraph::kBackward,
              kWeight = StageGraph::kWeight;

}  // namespace

std::vector<Turns> turns_of(const StageGraph& graph, const PlacedOrders& orders) {
  std::vector<Turns> result;
  for (const auto& order : orders) {
    result.emplace_back();
    for (const Placed& turn : order)
      result.back().push_back(graph.turn(turn.direction, turn.stage, turn.place));
  }
  return result;
}

std::vector<int> microbatches_of(const StepCosts& costs, const std::vector<Turns>& orders) {
  std::vector<int> result;
  std::vector<bool> seen(static_cast<std::size_t>(costs.microbatches));
  const auto add = [&](int k) {
    if (!seen[static_cast<std::size_t>(k)]) result.push_back(k);
    seen[static_cast<std::size_t>(k)] = true;
  };
  for (const Turns& turns : orders)
    for (const Turn& turn : turns)
      if (is_forward(turn) && turn.branch + std::size_t{1} == costs.branches.size() &&
          turn.stage == 0 && turn.work >= 0 && turn.work < costs.branches.back().works())
        add(costs.branches.back().microbatch_of[static_cast<std::size_t>(turn.work)]);
  for (int k = 0; k < costs.microbatches; ++k) add(k);
  return result;
}

std::optional<PlacedOrders> placed_of(const StageGraph& graph, const std::vector<Turns>& orders) {
  std::vector<std::vector<int>> place_of;  // by branch, work
  for (const std::vector<int>& works : graph.work_at) {
    place_of.emplace_back(works.size());
    for (std::size_t p = 0; p < works.size(); ++p)
      place_of.back()[static_cast<std::size_t>(works[p])] = static_cast<int>(p);
  }
  std::vector<std::size_t> first(place_of.size() + 1, 0);  // stage of the graph, by branch
  for (const StageGraph::Stage& stage : graph.stages) first[stage.branch + 1] += 1;
  for (std::size_t b = 0; b < place_of.size(); ++b) first[b + 1] += first[b];

  std::array<std::vector<int>, 3> next;
  for (auto& of : next) of.assign(graph.stages.size(), 0);
  PlacedOrders result(orders.size());
  std::size_t turns = 0;
  for (std::size_t r = 0; r < orders.size(); ++r)
    for (const Turn& turn : orders[r]) {
      if (turn.branch >= place_of.size()) return {};
      const std::size_t s = first[turn.branch] + turn.stage;
      if (s >= first[turn.branch + std::size_t{1}] || graph.stages[s].rank != static_cast<int>(r))
        return {};
      const StageGraph::Stage& stage = graph.stages[s];
      if (turn.work < 0 || turn.work >= stage.works) return {};
      const int place = place_of[turn.branch][static_cast<std::size_t>(turn.work)];
      const auto add = [&](int direction) {
        const auto d = static_cast<std::size_t>(direction);
        const int at = next[d][s]++;
        if (!stage.runs[d] || at >= stage.works || (direction != kWeight && at != place))
          return false;
        ++turns;
        result[r].push_back({static_cast<std::uint8_t>(d), static_cast<std::uint16_t>(s), at});
        return true;
      };
      const bool part =
          turn.kind == TurnKind::backward_input || turn.kind == TurnKind::backward_weight;
      if (part && !graph.apart) return {};
      if (is_forward(turn) ? !add(kForward) : returns_gradient(turn) && !add(kBackward)) return {};
      const bool weight = turn.kind == TurnKind::backward || turn.kind == TurnKind::backward_weight;
      if (weight && stage.runs[kWeight] && !add(kWeight)) return {};
    }
  if (turns != graph.turns) return {};
  return result;
}

bool fits(const StageGraph& graph, std::size_t rank, const std::vector<Placed>& order) {
  if (!graph.limited) return true;
  std::int64_t held = 0;
  for (const Placed& turn : order) {
    const StageGraph::Stage& stage = graph.stages[turn.stage];
    const std::int64_t kept = graph.kept[stage.first + static_cast<std::size_t>(turn.place)];
    if (turn.direction == stage.takes) held += kept;
    if (held > graph.capacity[rank]) return false;
    if (turn.direction == stage.gives) held -= kept;
  }
  return true;
}

void turn_round(const StageGraph& mirror, PlacedOrders& orders) {
  for (auto& order : orders) {
    std::reverse(order.begin(), order.end());
    for (Placed& turn : order) {
      if (turn.direction != kWeight) turn.direction = static_cast<std::uint8_t>(1 - turn.direction);
      turn.place = mirror.stages[turn.stage].works - 1 - turn.place;
    }
  }
}

}  // namespace polyphony
