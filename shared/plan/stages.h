// The stages of one branch, without the rest of its plan: for who compares many layouts.
#pragma once

#include <vector>

#include "shared/plan/plan.h"

namespace polyphony {

// Of the modules that the branch has, in their order, split as `blocks` says or, where it says
// nothing, so that the dearest of `stages` is as cheap as can be. `layout`: which of them are fully
// sharded. Costs as in make_plan(); of modules that are not asked for there need be none.
std::vector<Stage> make_stages(const Model& model, const Layout& layout, const LayerCosts& costs,
                               const std::vector<ModuleId>& modules, int stages,
                               std::vector<int>& blocks);

}  // namespace polyphony
