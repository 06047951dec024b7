// When every action of given orders runs, what each rank holds meanwhile, how long it rests: the
// recurrences of the estimate over numbers alone (shared/planner/list_schedule.h says which).
//   A backward lasts input + weight; what a forward keeps is held to the end of the B, or of the W.
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
// Infeasible, naming rank and action: an action lost, doubled or of nothing that there is; a link whose
// two ends take microbatches in different orders; actions that wait for each other, as one
// cycle. Capacities are
// not looked at.
std::variant<Timetable, Infeasible> timetable(const StepCosts& costs,
                                              const std::vector<Actions>& orders);

// The most that a rank rests between its first action and its last.
Seconds longest_rest(const Timetable& table);

}  // namespace polyphony
