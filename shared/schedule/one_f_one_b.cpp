// Schedules with whole backwards: gpipe, 1f1b, eager-1f1b, interleaved.
#include <algorithm>

#include "shared/error.h"
#include "shared/schedule/schedule.h"

namespace polyphony {

Actions one_and_one(int warm_up, int microbatches, int stage) {
  warm_up = std::min(warm_up, microbatches);
  Actions order;
  order.reserve(2 * static_cast<std::size_t>(microbatches));
  for (int m = 0; m < warm_up; ++m) order.push_back(make_action(ActionKind::forward, stage, m));
  for (int m = warm_up; m < microbatches; ++m) {
    order.push_back(make_action(ActionKind::forward, stage, m));
    order.push_back(make_action(ActionKind::backward, stage, m - warm_up));
  }
  for (int m = microbatches - warm_up; m < microbatches; ++m)
    order.push_back(make_action(ActionKind::backward, stage, m));
  return order;
}

// The k-th forward belongs to microbatch group k / (pp·vpp) and chunk k / pp mod vpp. A branch that
// the pipeline feeds holds microbatches n … n + after before it returns the gradient of the n-th.
// Therefore the last rank runs the last chunk of microbatch n + after, up to ⌈after / pp⌉ groups
// later, before its first backward.
Actions interleaved_order(const Pipeline& pipeline, int rank, int per_rank) {
  const int chunks = pipeline.virtual_stages, group = pipeline.ranks, after = pipeline.after;
  POLYPHONY_CHECK(pipeline.microbatches % group == 0, pipeline.microbatches
                                                          << " microbatches, " << group
                                                          << " ranks; check_layout() refuses it");
  const int total = pipeline.microbatches * chunks;
  const auto action = [&](ActionKind kind, int k) {
    const int chunk = k / group % chunks;
    return make_action(kind,
                       (kind == ActionKind::forward ? chunk : chunks - 1 - chunk) * group + rank,
                       k / (group * chunks) * group + k % group);
  };
  const int groups_after = (after + group - 1) / group;
  const int warm_up = std::min(
      total, per_rank * (group - rank - 1) + (chunks - 1) * group * (1 + groups_after) + after);
  Actions order;
  order.reserve(2 * static_cast<std::size_t>(total));
  for (int k = 0; k < warm_up; ++k) order.push_back(action(ActionKind::forward, k));
  for (int k = warm_up; k < total; ++k) {
    order.push_back(action(ActionKind::forward, k));
    order.push_back(action(ActionKind::backward, k - warm_up));
  }
  for (int k = total - warm_up; k < total; ++k) order.push_back(action(ActionKind::backward, k));
  return order;
}

namespace schedules {

Actions gpipe(const Pipeline& pipeline, int rank) {
  Actions order;
  const int chunks = pipeline.virtual_stages;
  for (int k = 0; k < chunks; ++k)
    for (int m = 0; m < pipeline.microbatches; ++m)
      order.push_back(make_action(ActionKind::forward, k * pipeline.ranks + rank, m));
  for (int k = chunks; k-- > 0;)
    for (int m = 0; m < pipeline.microbatches; ++m)
      order.push_back(make_action(ActionKind::backward, k * pipeline.ranks + rank, m));
  return order;
}

Actions one_f_one_b(const Pipeline& pipeline, int rank) {
  return one_and_one(pipeline.ranks - rank - 1 + pipeline.after, pipeline.microbatches, rank);
}

Actions eager_one_f_one_b(const Pipeline& pipeline, int rank) {
  return one_and_one(2 * (pipeline.ranks - rank - 1) + pipeline.after, pipeline.microbatches, rank);
}

Actions interleaved(const Pipeline& pipeline, int rank) {
  return interleaved_order(pipeline, rank, 2);
}

}  // namespace schedules
}  // namespace polyphony
