#include "shared/planner/host_copies.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace polyphony {
namespace {

std::size_t place_of(const StepCosts& costs, const Turn& turn) {
  return static_cast<std::size_t>(turn.stage) * costs.branches[turn.branch].microbatch_of.size() +
         static_cast<std::size_t>(turn.work);
}

Seconds length(const StepCosts& costs, const Turn& turn) {
  const StageCost& cost = costs.branches[turn.branch].costs[place_of(costs, turn)];
  switch (turn.kind) {
    case TurnKind::forward:
      return cost.forward;
    case TurnKind::backward:
      return cost.input + cost.weight;
    case TurnKind::backward_input:
      return cost.input;
    case TurnKind::backward_weight:
      return cost.weight;
  }
  return {};
}

}  // namespace

std::vector<Trip> find_trips(const StepCosts& costs, const Turns& order) {
  std::vector<Trip> trips;
  std::map<std::tuple<int, int, int>, std::size_t> open;
  const int turns = static_cast<int>(order.size());
  for (int p = 0; p < turns; ++p) {
    const Turn& turn = order[static_cast<std::size_t>(p)];
    const std::tuple key(turn.branch, turn.stage, turn.work);
    if (is_forward(turn)) {
      open[key] = trips.size();
      trips.push_back(
          {.branch = turn.branch, .at = place_of(costs, turn), .forward = p, .last = p});
    } else if (const auto of = open.find(key); of != open.end()) {
      if (returns_gradient(turn)) trips[of->second].backward = p;
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

void pay_for_copies(const std::vector<Turns>& orders, StepCosts& costs) {
  const StepCosts before = costs;
  for (const Turns& order : orders)
    for (const Trip& trip : find_trips(before, order)) {
      StageCost& cost = costs.branches[trip.branch].costs[trip.at];
      if (cost.moved == Bytes(0)) continue;
      cost.forward += trip.paid_out(cost.copy);
      cost.input += trip.paid_back(cost.copy);
    }
}

}  // namespace polyphony
