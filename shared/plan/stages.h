// The stages of one branch, without the rest of its plan. For callers that compare many layouts.
#pragma once

#include <vector>

#include "shared/plan/plan.h"

namespace polyphony {

// Returns, for each stage, which of the pp ranks along the branch's pipeline holds it. `language`:
// the branch holds the language module and so follows the layout's schedule.
std::vector<int> ranks_of_stages(const Layout& layout, const ModuleLayout& grid, bool language);

// Returns the chain of units (one per block) by which a branch is split into stages. Objects that
// `by` refers to must outlive it.
Chain chain_of(const Model& model, const Layout& layout, const Splitting& by,
               const std::vector<ModuleId>& modules, const ModuleLayout& grid,
               const std::vector<int>& ranks);

// Returns the stages of a branch of `modules`, in their order, split as the grid's `blocks` state.
// If `blocks` is empty, a balanced split is computed and written there.
//   `ranks`   result of ranks_of_stages()
//   `layout`  its balance (costs to split by) and which modules are fully sharded
//   `by`      needs costs only for the modules listed
std::vector<Stage> make_stages(const Model& model, const Layout& layout, const Splitting& by,
                               const std::vector<ModuleId>& modules, ModuleLayout& grid,
                               const std::vector<int>& ranks);

}  // namespace polyphony
