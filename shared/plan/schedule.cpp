#include "shared/plan/schedule.h"

#include <algorithm>

#include "shared/error.h"

namespace polyphony {
namespace {

// `warm_up` forwards, then one of each in turn.
std::vector<Slot> one_and_one(int warm_up, int microbatches) {
  warm_up = std::min(warm_up, microbatches);
  std::vector<Slot> order;
  order.reserve(2 * static_cast<std::size_t>(microbatches));
  for (int m = 0; m < warm_up; ++m) order.push_back({Turn::forward, m, 0});
  for (int m = warm_up; m < microbatches; ++m) {
    order.push_back({Turn::forward, m, 0});
    order.push_back({Turn::backward, m - warm_up, 0});
  }
  for (int m = microbatches - warm_up; m < microbatches; ++m)
    order.push_back({Turn::backward, m, 0});
  return order;
}

std::vector<Slot> interleaved(const PipelineShape& shape, int stage, int microbatches) {
  POLYPHONY_CHECK(microbatches % shape.stages == 0, microbatches << " microbatches, "
                                                                 << shape.stages
                                                                 << " stages; check_layout() "
                                                                    "refuses it");
  const int total = microbatches * shape.virtual_stages, group = shape.stages;
  const auto place = [&](Turn turn, int k) {
    const int chunk = k / group % shape.virtual_stages;
    return Slot{turn, k / (group * shape.virtual_stages) * group + k % group,
                turn == Turn::forward ? chunk : shape.virtual_stages - 1 - chunk};
  };
  const int warm_up =
      std::min(total, 2 * (shape.stages - stage - 1) + (shape.virtual_stages - 1) * group);
  std::vector<Slot> order;
  order.reserve(2 * static_cast<std::size_t>(total));
  for (int k = 0; k < warm_up; ++k) order.push_back(place(Turn::forward, k));
  for (int k = warm_up; k < total; ++k) {
    order.push_back(place(Turn::forward, k));
    order.push_back(place(Turn::backward, k - warm_up));
  }
  for (int k = total - warm_up; k < total; ++k) order.push_back(place(Turn::backward, k));
  return order;
}

std::vector<Slot> zero_bubble(int stages, int stage, int microbatches) {
  std::vector<Slot> order;
  int weights = 0;
  for (const Slot& slot : one_and_one(stages - stage - 1, microbatches)) {
    order.push_back(slot);
    if (slot.turn == Turn::backward && slot.microbatch >= stage)
      order.push_back({Turn::weight, weights++, 0});
  }
  while (weights < microbatches) order.push_back({Turn::weight, weights++, 0});
  return order;
}

}  // namespace

std::vector<Slot> stage_order(ScheduleKind kind, const PipelineShape& shape, int stage,
                              int microbatches) {
  switch (kind) {
    case ScheduleKind::gpipe: {
      std::vector<Slot> order;
      for (const Turn turn : {Turn::forward, Turn::backward})
        for (int k = 0; k < shape.virtual_stages; ++k)
          for (int m = 0; m < microbatches; ++m)
            order.push_back({turn, m, turn == Turn::forward ? k : shape.virtual_stages - 1 - k});
      return order;
    }
    case ScheduleKind::one_f_one_b:
      return one_and_one(shape.stages - stage - 1 + shape.after, microbatches);
    case ScheduleKind::interleaved:
      return interleaved(shape, stage, microbatches);
    case ScheduleKind::zero_bubble:
      return zero_bubble(shape.stages, stage, microbatches);
  }
  return {};
}

int forward_lead(const std::vector<Slot>& order) {
  int forwards = 0, backwards = 0, lead = 0;
  for (const Slot& slot : order) {
    if (slot.chunk != 0) continue;
    if (slot.turn == Turn::forward) ++forwards;
    if (slot.turn == Turn::backward) lead = std::max(lead, forwards - ++backwards);
  }
  return lead;
}

std::vector<Slot> feeding_order(int lead, int distance, int microbatches) {
  return one_and_one(lead + distance, microbatches);
}

}  // namespace polyphony
