// Whether a layout is legal for a scenario, and whether the executor can run it. The rules are in
// shared/check/checks.h.
#pragma once

#include <optional>

#include "shared/error.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

// Returns why the layout is not legal for this scenario, or nothing if it is legal. The reason
// names the nearest legal values. Checks the grids, the tiling of the world, divisibility, the
// global batch, and what neither simulator nor executor supports.
std::optional<Infeasible> check_layout(const Scenario& scenario, const Layout& layout);
// Returns the scenario's layout. Throws InputError if there is none or if it is not legal.
const Layout& require_layout(const Scenario& scenario);
// Returns why the executor cannot run a layout that the simulator can ("simulation only"), or
// nothing.
std::optional<Infeasible> check_runnable(const Scenario& scenario, const Layout& layout);

}  // namespace polyphony
