// Schedules with split backwards: input part at once, weight part later.
#include "shared/schedule/schedule.h"

namespace polyphony::schedules {
namespace {

// Returns 1f1b with this warm-up and each weight part `later` microbatches after its input part.
Actions split(int warm_up, int later, int microbatches, int stage) {
  Actions order;
  order.reserve(3 * static_cast<std::size_t>(microbatches));
  int weights = 0;
  for (Action action : one_and_one(warm_up, microbatches, stage)) {
    if (action.kind == ActionKind::backward) action.kind = ActionKind::backward_input;
    order.push_back(action);
    if (action.kind == ActionKind::backward_input && action.work >= later)
      order.push_back(make_action(ActionKind::backward_weight, stage, weights++));
  }
  while (weights < microbatches)
    order.push_back(make_action(ActionKind::backward_weight, stage, weights++));
  return order;
}

}  // namespace

Actions zero_bubble(const Pipeline& pipeline, int rank) {
  return split(pipeline.ranks - rank - 1 + pipeline.after, rank, pipeline.microbatches, rank);
}

// With F = I = W = 1, stage s starts at time s, gets its first input gradient at 2·pp − 1 − s and
// its last at 3·m − 2 − s: 2·(pp − s) − 1 forwards fit before the first, 2·s + 1 weight parts after
// the last.
Actions zero_bubble_h2(const Pipeline& pipeline, int rank) {
  return split(2 * (pipeline.ranks - rank - 1) + pipeline.after, 2 * rank, pipeline.microbatches,
               rank);
}

}  // namespace polyphony::schedules
