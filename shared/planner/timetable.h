// Computes when every action of given orders runs, how many bytes each rank holds, and how long it
// is idle. Uses the same recurrences as the estimate, over plain numbers
// (shared/planner/list_schedule.h).
//   A whole backward lasts input + weight. Saved activations are resident to the end of the B or W.
#pragma once

#include <variant>
#include <vector>

#include "shared/error.h"
#include "shared/planner/step_costs.h"
#include "shared/schedule/action.h"

namespace polyphony {

struct TimedAction {
  Action action;
  Seconds start{}, end{};
};
struct Timetable {
  std::vector<std::vector<TimedAction>> ranks;
  Seconds makespan{};
  std::vector<Seconds> busy;  // by rank
  std::vector<Bytes> peak;
};
// Returns the timetable, or Infeasible that names the rank and the action: if an action is missing,
// duplicated or unknown; if the two ends of a link take microbatches in different orders; or if
// actions wait for each other in a cycle. Capacities are not checked.
std::variant<Timetable, Infeasible> timetable(const StepCosts& costs,
                                              const std::vector<Actions>& orders);

// Returns the longest idle time of a rank between its first action and its last, summed over its
// gaps.
Seconds longest_rest(const Timetable& table);

}  // namespace polyphony
