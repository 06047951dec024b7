// What no order of a step's actions on their ranks goes below.
//   path    the longest way of one microbatch through all its stages and back
//   rank    on each rank: each action needs its way to it before (head) and its way on after (tail);
//           one action at a time, and were they allowed to interrupt each other, the one with the
//           longest tail first would be the quickest (Jackson's preemptive order): a bound, never
//           below the least head + all work + the least tail. A microbatch whose parts pass one
//           stage has the sum of them there.
//   memory  bytes · the shortest time that they can be held, over the rank's capacity, between its
//           least head and its least tail
// Source: Carlier and Pinson, Management Science 35(2), 1989, §3 (Jackson's preemptive schedule).
#pragma once

#include "shared/planner/step_costs.h"

namespace polyphony {

struct MakespanBound {
  Seconds path{}, rank{}, memory{};
  Seconds value() const;  // the largest
};
// `apart`: weight parts may run later than their input parts.
MakespanBound makespan_bound(const StepCosts& costs, bool apart = false);

// One machine: each job's head, length and tail; when the last tail ends.
struct OneMachineJob {
  double head = 0, length = 0, tail = 0;
};
double preemptive_makespan(std::vector<OneMachineJob> jobs);

}  // namespace polyphony
