#include "shared/goal/goal.h"

#include <algorithm>

namespace polyphony {

const char* name(Objective objective) {
  switch (objective) {
    case Objective::step:
      return "step";
    case Objective::tokens_per_gpu:
      return "tokens_per_gpu";
    case Objective::days:
      return "days";
    case Objective::dollars:
      return "dollars";
    case Objective::p95:
      return "p95";
    case Objective::memory:
      return "memory";
  }
  return "?";
}

bool wants(const Goal& goal, Objective objective) {
  return std::find(goal.objectives.begin(), goal.objectives.end(), objective) !=
         goal.objectives.end();
}

}  // namespace polyphony
