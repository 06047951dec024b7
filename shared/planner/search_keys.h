// Keys for the list scheduler that a search of orders begins with, carries over and moves.
#pragma once

#include <functional>

#include "shared/planner/list_schedule.h"

namespace polyphony {

enum class WeightParts : std::uint8_t {
  soon,
  fill
};  // with their input parts; where nothing else runs

// The pace at which the ranks can work off microbatches at best: work before a microbatch ÷ ranks
// + stretch · the way to the action within it.
Keys paced_keys(const StageGraph& graph, double stretch, WeightParts weights);

// Where actions of a placement stand in the mirror: the last to end goes first.
Keys keys_in_mirror(const StageGraph& graph, const ListSchedule& placed);

// Times of what stood in each place of another order of microbatches, for what stands there now.
Keys carried_keys(const StageGraph& from, const ListSchedule& placed, const StageGraph& to);

}  // namespace polyphony
