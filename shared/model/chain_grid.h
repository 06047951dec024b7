// The grid of a homogeneous layout. All modules of its chain share one grid, but experts, the
// assignment of tokens to context-parallel ranks and the method of context-parallel attention are
// settings of the language module only.
#pragma once

#include <vector>

#include "shared/model/layout.h"
#include "shared/model/model.h"

namespace polyphony {

// Returns the modules that a chain joins, in order: all but projectors, which belong to the block
// before them.
std::vector<ModuleId> chain_modules(const Model& model);

// Returns the chain's grid: that of the last module, which lists the chain's blocks, with the
// language module's own settings.
ModuleLayout chain_grid(const Model& model, const Layout& layout);

// Resets the language module's own settings in the grids of all other modules.
void leave_to_language(const Model& model, Layout& layout);

}  // namespace polyphony
