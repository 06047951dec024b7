// Searches the order of a step's actions: the order of microbatches, and what each rank runs next.
// A local search over orders of microbatches and over the keys of the list scheduler; it improves
// with the time it is given.
//   start    Microbatch orders: as given, by work, and with the least work at both ends (the
//            microbatches that fill and drain the pipeline should be small). Keys: work of all
//            microbatches before ÷ ranks (the best pace of the ranks) + stretch · path to the
//            action. Split weight parts run at once, or only where nothing else runs. Also
//            SearchBudget::from
//   improve  A schedule is placed again in reversed time, in the order of its ends, then forwards
//            again (forward-backward improvement; memory is the same both ways)
//   move     Moves one action within its rank's order, or a microbatch within the order; or shifts
//            the keys of one microbatch, of a time span, or of a rank or branch within one
//            microbatch. Accepted if better, or worse by less than 3e-4 of the makespan (threshold
//            accepting)
//
// Stops early at the lower bound (makespan_bound.h). Deterministic for a given seed and number of
// placements. Reads no clock: `stop` is called before each move.
//
// Sources: forward-backward improvement: Li and Willis, EJOR 56 (1992); threshold accepting: Dueck
// and Scheuer, J. Comput. Phys. 90 (1990).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <variant>
#include <vector>

#include "shared/error.h"
#include "shared/planner/step_costs.h"
#include "shared/schedule/action.h"

namespace polyphony {

struct SearchBudget {
  std::uint64_t seed = 0;
  // Maximum number of placements of a whole step; the start takes about 100.
  int placements = std::numeric_limits<int>::max();
  // Ends the search when it returns true; absent: only `placements` ends it.
  std::function<bool()> stop = {};
  bool apart = false;  // true: backwards may run in two parts, the weight part later
  // Known orders: the result is at least as fast as those of them that can run and fit in memory.
  std::vector<std::vector<Actions>> from = {};
  std::function<void(Seconds)> better = {};  // called with each new best makespan
};
struct FoundOrder {
  std::vector<Actions> orders;    // by rank
  std::vector<int> microbatches;  // order of microbatches, the same on all links
  Seconds makespan{};
  int placements = 0;
};
// Returns the best order found, or Infeasible if a single microbatch exceeds a rank's memory.
std::variant<FoundOrder, Infeasible> search_order(const StepCosts& costs,
                                                  const SearchBudget& budget);

}  // namespace polyphony
