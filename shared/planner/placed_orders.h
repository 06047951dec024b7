// Converts orders of a step's actions between the list scheduler's form (stage of the StageGraph
// and place in the order of microbatches) and the common form (branch, stage and microbatch).
#pragma once

#include <optional>
#include <vector>

#include "shared/planner/list_schedule.h"

namespace polyphony {

using PlacedOrders = std::vector<std::vector<Placed>>;  // by rank

std::vector<Actions> actions_of(const StageGraph& graph, const PlacedOrders& orders);

// Returns the order in which actions send microbatches on: that of the last branch's first stage,
// followed by all microbatches that it does not run. Each microbatch occurs once.
std::vector<int> microbatches_of(const StepCosts& costs, const std::vector<Actions>& orders);

// Returns the orders in the list scheduler's form. Returns nothing if actions are missing or are on
// the wrong rank, if microbatches are not in the order of the graph, or if backwards are split but
// the graph has them whole. A whole backward that the graph splits becomes an input part followed
// by a weight part; weight parts of a stage take the order of its microbatches.
std::optional<PlacedOrders> placed_of(const StageGraph& graph, const std::vector<Actions>& orders);

// Returns true if a rank's actions stay within its memory capacity.
bool fits(const StageGraph& graph, std::size_t rank, const std::vector<Placed>& order);

// Reverses the orders in time: converts orders of a graph to those of `mirror`, or back.
void turn_round(const StageGraph& mirror, PlacedOrders& orders);

}  // namespace polyphony
