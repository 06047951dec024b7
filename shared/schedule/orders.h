// What follows from the actions of a pipeline's ranks, whatever schedule made them: what is in flight,
// how far forwards run ahead. When each action runs: shared/planner/timetable.h.
#pragma once

#include <string>
#include <vector>

#include "shared/schedule/schedule.h"

namespace polyphony {

// How many forwards of a stage the order runs ahead of its backwards at most: the n-th backward
// needs n + lead forwards before it.
int forward_lead(const Actions& order, int branch, int stage);

// Of one stage while an action runs: works from F to B or I, works from I to W, and works in both, whose
// I runs.
struct InFlight {
  std::uint32_t tapes = 0, weights = 0, both = 0;
  bool operator==(const InFlight&) const = default;
};
// Whether a holds at least as much as b in every stage.
bool covers(const std::vector<InFlight>& a, const std::vector<InFlight>& b);
// By stage that the order visits, in their order. A rank may hold most of one stage when it holds
// few of another: these are the moments of which none holds more than another in every stage.
struct StagesInFlight {
  std::vector<std::uint16_t> stages;  // ascending; of `branch` alone
  std::vector<std::vector<InFlight>> moments;
};
StagesInFlight in_flight(const Actions& order, int branch = 0);
// The most tapes that one rank holds at a moment, all its stages together.
int tapes_in_flight(const Actions& order, int branch = 0);

// "F microbatch 3 of stage 2".
std::string describe(const Action& action);

}  // namespace polyphony
