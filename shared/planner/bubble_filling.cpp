#include "shared/planner/bubble_filling.h"

#include <algorithm>

#include "shared/planner/placed_orders.h"

namespace polyphony {
namespace {

constexpr double kBeforeAll = -1e9;  // below all keys of other branches, which are 0 or more

bool has_parts(const std::vector<Actions>& orders, std::size_t branch) {
  return std::any_of(orders.begin(), orders.end(), [&](const Actions& actions) {
    return std::any_of(actions.begin(), actions.end(), [&](const Action& action) {
      return action.branch == branch && action.kind == ActionKind::backward_weight;
    });
  });
}

// Keys that let `branch` go first; `taken`: position of each microbatch's forward on the branch's
// first stage in its rank's order.
struct Led {
  Keys keys;
  std::vector<double> taken;
};

Led lead(const StepCosts& costs, const StageGraph& graph, std::size_t branch,
         const std::vector<Actions>& orders) {
  Led led{keys_in_turn(graph), std::vector<double>(std::size_t(costs.microbatches))};
  led.keys.alternate = false;
  std::size_t first = 0;  // first stage of the branch in the graph
  while (graph.stages[first].branch != branch) ++first;
  for (const Actions& actions : orders) {
    double place = 0;
    for (const Action& action : actions) {
      if (action.branch != branch) continue;
      const auto work = static_cast<std::size_t>(action.work);
      const std::size_t node = graph.stages[first + action.stage].first + work;
      const double key = kBeforeAll + place;
      if (is_forward(action)) led.keys.of[kForward][node] = key;
      if (returns_gradient(action)) led.keys.of[kBackward][node] = key;
      if (!is_forward(action) && action.kind != ActionKind::backward_input)
        led.keys.of[kWeight][node] = key;
      if (is_forward(action) && action.stage == 0)
        led.taken[std::size_t(costs.branches[branch].microbatch_of[work])] = place;
      ++place;
    }
  }
  return led;
}

}  // namespace

std::variant<std::vector<Actions>, Infeasible> fill_bubbles(const StepCosts& costs,
                                                            std::size_t branch,
                                                            const std::vector<Actions>& orders) {
  if (std::string why = too_large(costs); !why.empty()) return Infeasible{std::move(why)};
  const StageGraph graph(costs, microbatches_in_order(costs), has_parts(orders, branch));
  Led led = lead(costs, graph, branch, orders);
  ListScheduler scheduler(graph);
  ListSchedule best, other;
  scheduler.run(led.keys, best);
  const double all = 3.0 * costs.microbatches * static_cast<double>(graph.stages.size());
  for (double ahead = 0; ahead <= all; ahead = std::max<double>(costs.ranks, 2 * ahead)) {
    for (const StageGraph::Stage& stage : graph.stages)
      for (int place = 0; stage.branch < branch && place < stage.works; ++place) {
        const std::size_t node = stage.first + static_cast<std::size_t>(place);
        // Half a position earlier: just before the branch's own action at that position.
        led.keys.of[kForward][node] =
            kBeforeAll - 0.5 - ahead + led.taken[static_cast<std::size_t>(graph.microbatch[node])];
      }
    if (scheduler.run(led.keys, other, best.makespan)) std::swap(best, other);
  }
  return actions_of(graph, best.orders);
}

}  // namespace polyphony
