// The order of a step's actions: which microbatch goes first, what each rank runs next. A search over
// orders of microbatches and over the keys of the list scheduler, better the longer it may go on.
//   start    microbatches as they come, by work, and with the least work at both ends (what fills
//            and drains the pipeline should be small); keys from the pace at which the ranks can
//            work off microbatches at best: work before it ÷ ranks + stretch · the way to the action; weight
//            parts, where backwards are apart, at once or where nothing else runs; orders that are known
//   improve  a placement is placed again backwards in time, in the order of its ends, then moved
//            forwards (forward-backward improvement; memory is the same both ways)
//   move     one action elsewhere in its rank's order; a microbatch elsewhere in the order; keys of one
//            microbatch, of a span of time, of a rank or a branch within one shifted. Kept when better,
//            or worse by a little (threshold accepting at 3e-4 of the makespan)
// Ends at the bound (makespan_bound.h). Deterministic for a seed and a number of placements. No clock:
// `stop` is asked before each move.
// Sources: forward-backward improvement: Li and Willis, EJOR 56 (1992); thresholds: Dueck and
// Scheuer, J. Comput. Phys. 90 (1990).
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
  int placements = std::numeric_limits<int>::max();  // of a whole step; the start takes about 100
  std::function<bool()> stop = {};                   // absent: placements alone end it
  bool apart = false;  // backwards may run in two parts, the weights' later
  // Orders that are known: what is found is no worse than those that can run and fit.
  std::vector<std::vector<Actions>> from = {};
  std::function<void(Seconds)> better = {};  // told of each makespan that is the best so far
};
struct FoundOrder {
  std::vector<Actions> orders;    // by rank
  std::vector<int> microbatches;  // in the order of all links
  Seconds makespan{};
  int placements = 0;
};
// Infeasible: a microbatch alone keeps more than a rank has.
std::variant<FoundOrder, Infeasible> search_order(const StepCosts& costs,
                                                  const SearchBudget& budget);

}  // namespace polyphony
