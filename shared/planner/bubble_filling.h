// Bubble filling: one branch's actions stand before all others, in an order that is given; those of the others
// run where it would rest, earlier microbatches first.
//   Forwards of branches before it that nothing but bubbles were left to would hold it up: one of a
//   microbatch also stands before the actions from so many on ahead of the branch's own first forward of that
//   microbatch; how many is the quickest of none, 0, ranks, twice as many, …
//   Placed by the list scheduler (shared/planner/list_schedule.h), within each rank's capacity.
// Source: Feng et al., Optimus, arXiv 2408.03505: encoders in the language module's bubbles, whose own
// schedule stays. Encoders have the language module's ranks and their pipeline here, and kernels are not
// taken apart to fit between its collectives, as there; how far ahead encoders run is ours.
#pragma once

#include <variant>
#include <vector>

#include "shared/error.h"
#include "shared/planner/step_costs.h"
#include "shared/schedule/action.h"

namespace polyphony {

// `orders`: by rank; actions of other branches are passed over. Backwards run as they do there, whole or in
// two parts. Infeasible: a microbatch alone keeps more than a rank has.
std::variant<std::vector<Actions>, Infeasible> fill_bubbles(const StepCosts& costs,
                                                            std::size_t branch,
                                                            const std::vector<Actions>& orders);

}  // namespace polyphony
