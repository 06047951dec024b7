#include "shared/plan/schedule.h"

#include <algorithm>

#include "shared/error.h"

namespace polyphony {

std::vector<Slot> stage_order(ScheduleKind kind, int stages, int stage, int microbatches) {
  int warm_up = 0;
  switch (kind) {
    case ScheduleKind::gpipe:
      warm_up = microbatches;
      break;
    case ScheduleKind::one_f_one_b:
      warm_up = std::min(stages - stage - 1, microbatches);
      break;
    case ScheduleKind::interleaved:
    case ScheduleKind::zero_bubble:
      POLYPHONY_CHECK(false,
                      "schedule " << name(kind) << " reached planning; check_layout() refuses it");
  }
  std::vector<Slot> order;
  order.reserve(2 * static_cast<std::size_t>(microbatches));
  for (int m = 0; m < warm_up; ++m) order.push_back({true, m});
  for (int m = warm_up; m < microbatches; ++m) {
    order.push_back({true, m});
    order.push_back({false, m - warm_up});
  }
  for (int m = microbatches - warm_up; m < microbatches; ++m) order.push_back({false, m});
  return order;
}

}  // namespace polyphony
