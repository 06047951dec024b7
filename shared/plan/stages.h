// The stages of one branch, without the rest of its plan: for who compares many layouts.
#pragma once

#include <vector>

#include "shared/plan/plan.h"

namespace polyphony {

// By stage: which of the pp ranks along a branch's pipeline holds it. `language`: the branch has the
// language module, whose schedule is the layout's.
std::vector<int> ranks_of_stages(const Layout& layout, const ModuleLayout& grid, bool language);

// What such a branch is split by, of a unit a block; what `by` refers to must outlive it.
Chain chain_of(const Model& model, const Layout& layout, const Splitting& by,
               const std::vector<ModuleId>& modules, const ModuleLayout& grid,
               const std::vector<int>& ranks);

// Of the modules that the branch has, in their order, split as the grid's `blocks` say; where they
// say nothing, they are found and written there. `ranks`: ranks_of_stages(). `layout`: how they are
// balanced, and which are fully sharded. Of modules that are not asked for there need be no costs.
std::vector<Stage> make_stages(const Model& model, const Layout& layout, const Splitting& by,
                               const std::vector<ModuleId>& modules, ModuleLayout& grid,
                               const std::vector<int>& ranks);

}  // namespace polyphony
