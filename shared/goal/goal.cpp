#include "shared/goal/goal.h"

#include <algorithm>

namespace polyphony {

bool wants(const Goal& goal, Objective objective) {
  return std::find(goal.objectives.begin(), goal.objectives.end(), objective) !=
         goal.objectives.end();
}

}  // namespace polyphony
