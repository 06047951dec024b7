// Lower bound of the makespan of a step over all orders of its actions, for a fixed placement on
// ranks.
//   path    the longest path of one microbatch through all its stages and back
//   rank    per rank: each action has a head (time before it can start) and a tail (time after it).
//           Running one action at a time with preemption, longest tail first, is optimal (Jackson's
//           preemptive schedule), and its makespan bounds the non-preemptive one. It is at least
//           the least head + all work + the least tail. A microbatch with several parts on a stage
//           counts their sum there
//   memory  bytes · the shortest time that they can be held, divided by the rank's capacity,
//           between the rank's least head and its least tail
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

// Returns the makespan of one machine with preemption: when the last tail ends.
struct OneMachineJob {
  double head = 0, length = 0, tail = 0;
};
double preemptive_makespan(std::vector<OneMachineJob> jobs);

}  // namespace polyphony
