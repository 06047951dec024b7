// The rules behind check_layout() (shared/check/check.h), grouped by subject. Each refusal names
// the module, what is wrong and the nearest legal values. Used by check*.cpp, and by searches that
// build grids one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "shared/error.h"
#include "shared/scenario/scenario.h"

namespace polyphony::checks {

using Verdict = std::optional<Infeasible>;
inline Verdict refuse(std::string reason) { return Infeasible{std::move(reason)}; }
// Returns the divisors of `value` nearest to `asked`, below and above, as text: "4 or 8".
std::string nearest_divisors(std::int64_t value, std::int64_t asked);

// Checks the modules and edges of a model.
Verdict check_model(const Model& model);
// Checks one module's tp, cp, ep, sp, shard and recompute against its dimensions.
Verdict check_grid(const Module& module, const ModuleLayout& layout);
// Checks that a module with a grid of its own has no keys that apply to language modules only.
Verdict check_language_alone(const Module& module, const ModuleLayout& layout);
// Checks where the grids lie, and how blocks are split over stages. `subject` begins the message.
Verdict check_placement(const Model& model, const Layout& layout, int cluster_ranks);
// `lone_ends`: the first stage may hold the layers before the blocks alone, the last one those
// behind them.
Verdict check_blocks(const std::string& subject, int blocks, const ModuleLayout& layout,
                     bool lone_ends);
// Checks microbatches, schedules, planners and the global batch.
Verdict check_work(const Scenario& scenario, const Layout& layout);

// Checks the layout's own actions, once everything else is legal: missing, repeated or misplaced
// actions, and actions that wait for each other.
Verdict check_own_actions(const Scenario& scenario, const Layout& layout);

}  // namespace polyphony::checks
