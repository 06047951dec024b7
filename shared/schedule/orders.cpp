#include "shared/schedule/orders.h"

#include <algorithm>

namespace polyphony {

int forward_lead(const Actions& order, int branch, int stage) {
  int forwards = 0, backwards = 0, lead = 0;
  for (const Action& action : order) {
    if (action.branch != branch || action.stage != stage) continue;
    if (is_forward(action)) ++forwards;
    if (returns_gradient(action)) lead = std::max(lead, forwards - ++backwards);
  }
  return lead;
}

bool covers(const std::vector<InFlight>& a, const std::vector<InFlight>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].tapes < b[i].tapes || a[i].weights < b[i].weights || a[i].both > b[i].both)
      return false;
  return true;
}

StagesInFlight in_flight(const Actions& order, int branch) {
  StagesInFlight load;
  for (const Action& action : order)
    if (action.branch == branch) load.stages.push_back(action.stage);
  std::sort(load.stages.begin(), load.stages.end());
  load.stages.erase(std::unique(load.stages.begin(), load.stages.end()), load.stages.end());
  std::vector<InFlight> now(load.stages.size());
  bool grown = false;
  const auto keep = [&] {
    if (!grown) return;
    grown = false;
    for (const auto& moment : load.moments)
      if (covers(moment, now)) return;
    std::erase_if(load.moments, [&](const auto& moment) { return covers(now, moment); });
    load.moments.push_back(now);
  };
  for (const Action& action : order) {
    if (action.branch != branch) continue;
    const auto at = std::lower_bound(load.stages.begin(), load.stages.end(), action.stage);
    InFlight& here = now[static_cast<std::size_t>(at - load.stages.begin())];
    switch (action.kind) {
      case ActionKind::forward:
        ++here.tapes;
        grown = true;
        break;
      case ActionKind::backward:
        keep();
        --here.tapes;
        break;
      case ActionKind::backward_input:  // counted in both while it runs
        keep();
        ++here.weights;
        ++here.both;
        grown = true;
        keep();
        --here.tapes;
        --here.both;
        break;
      case ActionKind::backward_weight:
        keep();
        --here.weights;
        break;
    }
  }
  keep();
  return load;
}

int tapes_in_flight(const Actions& order, int branch) {
  int now = 0, most = 0;
  for (const Action& action : order) {
    if (action.branch != branch) continue;
    now += is_forward(action) ? 1 : returns_gradient(action) ? -1 : 0;
    most = std::max(most, now);
  }
  return most;
}

std::string describe(const Action& action) {
  return std::string(1, letter(action.kind)) + " microbatch " + std::to_string(action.work) +
         " of stage " + std::to_string(action.stage);
}

}  // namespace polyphony
