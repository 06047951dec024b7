// List-scheduler keys for the order search: the keys it starts with, carries over to another order
// of microbatches, and modifies.
#pragma once

#include <functional>

#include "shared/planner/list_schedule.h"

namespace polyphony {

// When weight parts run: right after their input parts, or where nothing else runs.
enum class WeightParts : std::uint8_t { soon, fill };

// Returns keys that follow the best possible pace of the ranks: the work of all microbatches before
// this one ÷ ranks + stretch · the path to the action within its microbatch.
Keys paced_keys(const StageGraph& graph, double stretch, WeightParts weights);

// Returns keys for the mirrored graph that reproduce a placement backwards: the action that ends
// last goes first.
Keys keys_in_mirror(const StageGraph& graph, const ListSchedule& placed);

// Returns keys for another order of microbatches: each action gets the start time of the action
// that was at its place in the previous order.
Keys carried_keys(const StageGraph& from, const ListSchedule& placed, const StageGraph& to);

}  // namespace polyphony
