#include "shared/planner/host_copies.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace polyphony {
namespace {

std::size_t place_of(const StepCosts& costs, const Action& action) {
  return static_cast<std::size_t>(action.stage) *
             costs.branches[action.branch].microbatch_of.size() +
         static_cast<std::size_t>(action.work);
}

Seconds length(const StepCosts& costs, const Action& action) {
  const StageCost& cost = costs.branches[action.branch].costs[place_of(costs, action)];
  switch (action.kind) {
    case ActionKind::forward:
      return cost.forward;
    case ActionKind::backward:
      return cost.input + cost.weight;
    case ActionKind::backward_input:
      return cost.input;
    case ActionKind::backward_weight:
      return cost.weight;
  }
  return {};
}

}  // namespace

std::vector<Trip> find_trips(const StepCosts& costs, const Actions& order) {
  std::vector<Trip> trips;
  std::map<std::tuple<int, int, int>, std::size_t> open;
  const int actions = static_cast<int>(order.size());
  for (int p = 0; p < actions; ++p) {
    const Action& action = order[static_cast<std::size_t>(p)];
    const std::tuple key(action.branch, action.stage, action.work);
    if (is_forward(action)) {
      open[key] = trips.size();
      trips.push_back(
          {.branch = action.branch, .at = place_of(costs, action), .forward = p, .last = p});
    } else if (const auto of = open.find(key); of != open.end()) {
      if (returns_gradient(action)) trips[of->second].backward = p;
      trips[of->second].last = p;
    }
  }
  for (Trip& trip : trips) {
    if (!trip.goes()) continue;
    trip.out = length(costs, order[static_cast<std::size_t>(trip.forward + 1)]);
    trip.back = length(costs, order[static_cast<std::size_t>(trip.backward - 1)]);
  }
  return trips;
}

void pay_for_copies(const std::vector<Actions>& orders, StepCosts& costs) {
  const StepCosts before = costs;
  for (const Actions& order : orders)
    for (const Trip& trip : find_trips(before, order)) {
      StageCost& cost = costs.branches[trip.branch].costs[trip.at];
      if (cost.moved == Bytes(0)) continue;
      cost.forward += trip.paid_out(cost.copy);
      cost.input += trip.paid_back(cost.copy);
    }
}

}  // namespace polyphony
