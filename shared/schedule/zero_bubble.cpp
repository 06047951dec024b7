// Schedules with split backwards: input part at once, weight part later.
#include <deque>

#include "shared/schedule/schedule.h"

namespace polyphony::schedules {
namespace {

// Returns the order with split backwards: each weight part runs `later` backwards after its input
// part.
Actions split(const Actions& order, int later) {
  Actions result;
  result.reserve(order.size() + order.size() / 2);
  std::deque<Action> waiting;
  const auto run_weight = [&] {
    result.push_back(waiting.front());
    waiting.pop_front();
  };
  for (Action action : order) {
    const bool backward = action.kind == ActionKind::backward;
    if (backward) action.kind = ActionKind::backward_input;
    result.push_back(action);
    if (!backward) continue;
    waiting.push_back(make_action(ActionKind::backward_weight, action.stage, action.work));
    if (static_cast<int>(waiting.size()) > later) run_weight();
  }
  while (!waiting.empty()) run_weight();
  return result;
}

}  // namespace

Actions zero_bubble(const Pipeline& pipeline, int rank) {
  return split(one_and_one(pipeline.ranks - rank - 1 + pipeline.after, pipeline.microbatches, rank),
               rank);
}

// With F = I = W = 1, stage s starts at time s, gets its first input gradient at 2·pp − 1 − s and
// its last at 3·m − 2 − s: 2·(pp − s) − 1 forwards fit before the first, 2·s + 1 weight parts after
// the last.
Actions zero_bubble_h2(const Pipeline& pipeline, int rank) {
  return split(
      one_and_one(2 * (pipeline.ranks - rank - 1) + pipeline.after, pipeline.microbatches, rank),
      2 * rank);
}

Actions interleaved_zero_bubble(const Pipeline& pipeline, int rank) {
  return split(interleaved_order(pipeline, rank, 1), rank);
}

}  // namespace polyphony::schedules
