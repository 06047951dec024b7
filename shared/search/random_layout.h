// Random legal layouts of a scenario: for tests of properties that every layout must have, and as
// starting points of searches. Every placement that the model allows is drawn, and every field of
// Layout and ModuleLayout except own actions, from values that are used in practice: shapes that
// divide the ranks, mostly powers of two and whole nodes.
#pragma once

#include <cstdint>
#include <optional>

#include "shared/model/layout.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

// Returns a layout that depends only on the arguments. Nothing if check_layout() refused a thousand
// draws.
std::optional<Layout> random_layout(const Scenario& scenario, std::uint64_t seed);
// Does the same for one placement.
std::optional<Layout> random_layout(const Scenario& scenario, Placement placement,
                                    std::uint64_t seed);

// Returns the placements that the model allows.
std::vector<Placement> placements_of(const Model& model);

}  // namespace polyphony
