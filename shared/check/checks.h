// The rules behind check_layout() (shared/plan/plan.h), by what they are about. Each refusal names
// the module, what is wrong and the nearest legal values. For check*.cpp, and for searches that
// build grids one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shared/plan/plan.h"

namespace polyphony::checks {

using Verdict = std::optional<Infeasible>;
inline Verdict refuse(std::string reason) { return Infeasible{std::move(reason)}; }
// The divisors of `value` nearest to `asked` from below and above: "4 or 8".
std::string nearest_divisors(std::int64_t value, std::int64_t asked);

// Which modules feed which.
Verdict check_model(const Model& model);
// One module's tp, cp, ep, sp, shard and recompute against its own dimensions.
Verdict check_grid(const Module& module, const ModuleLayout& layout);
// Of a module with a grid of its own: what is the language module's is not said of another.
Verdict check_language_alone(const Module& module, const ModuleLayout& layout);
// Where the grids lie, and blocks over their stages.
Verdict check_placement(const Model& model, const Layout& layout, int cluster_ranks);
Verdict check_blocks(const std::string& who, int blocks, const ModuleLayout& layout);
// Microbatches, schedules, the batch.
Verdict check_work(const Scenario& scenario, const Layout& layout);

// The layout's own actions, once all else is legal: lost, doubled, misplaced, or waiting for each other.
Verdict check_own_actions(const Scenario& scenario, const Layout& layout);

}  // namespace polyphony::checks
