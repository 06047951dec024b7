// Orders of a step's actions as the list scheduler has them (stage and place), and as everybody else
// does (branch, stage and work).
#pragma once

#include <optional>
#include <vector>

#include "shared/planner/list_schedule.h"

namespace polyphony {

using PlacedOrders = std::vector<std::vector<Placed>>;  // by rank

std::vector<Actions> actions_of(const StageGraph& graph, const PlacedOrders& orders);

// In which order actions send microbatches on: that of the last branch's first stage, all others after
// them. One entry for each.
std::vector<int> microbatches_of(const StepCosts& costs, const std::vector<Actions>& orders);

// None: actions are missing or not where they belong, works do not come in the order of the graph, or
// backwards are in parts that the graph has whole. A whole backward that the graph has in two is one
// part after the other; weight parts of a stage take the order of its works.
std::optional<PlacedOrders> placed_of(const StageGraph& graph, const std::vector<Actions>& orders);

// Whether a rank's actions keep within its capacity.
bool fits(const StageGraph& graph, std::size_t rank, const std::vector<Placed>& order);

// The same orders backwards in time: of `mirror`, or of what it is the mirror of.
void turn_round(const StageGraph& mirror, PlacedOrders& orders);

}  // namespace polyphony
