// The answer of `polyphony run` as stdout shows it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "shared/scenario/scenario.h"

namespace polyphony::sim {

// Returns what a run on recorded data trains on: the shapes of its samples. Empty for other
// sources.
std::string recorded_text(const Scenario& scenario);
// Returns one line, without the line break, of the summary that rank 0 prints at its end
// (exec/worker). Without steps there is no loss; JSON has null for a loss that is not a number.
// `predicted`: the time of a step, shown beside the measured one; absent: unknown.
std::string trained_text(const Scenario& scenario, const nlohmann::json& summary,
                         const std::optional<Seconds>& predicted = {});

}  // namespace polyphony::sim
