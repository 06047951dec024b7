// A random legal layout of a scenario: for tests of what must hold for every layout, and for searches
// to start from. Every placement that the model allows, and every coordinate of Layout and
// ModuleLayout but actions of one's own, among the values that people use: shapes that divide the
// ranks, powers of two and whole nodes mostly.
#pragma once

#include <cstdint>
#include <optional>

#include "shared/model/layout.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

// A pure function of its arguments. Nothing when a thousand draws were all refused by check_layout().
std::optional<Layout> random_layout(const Scenario& scenario, std::uint64_t seed);
// The same, of one placement.
std::optional<Layout> random_layout(const Scenario& scenario, Placement placement,
                                    std::uint64_t seed);

// The placements that some layout of the model can have.
std::vector<Placement> placements_of(const Model& model);

}  // namespace polyphony
