// A homogeneous layout has one grid for its chain of modules; but experts, context-parallel tokens and how their
// keys are attended to are the language module's alone.
#pragma once

#include "shared/model/layout.h"
#include "shared/model/model.h"

namespace polyphony {

// The chain's: the last module's, which has the chain's blocks, with the language module's part.
ModuleLayout chain_grid(const Model& model, const Layout& layout);

// Takes the language module's part from the grids of the others.
void leave_to_language(const Model& model, Layout& layout);

}  // namespace polyphony
