// Ranks that play on this machine's own cores.
#pragma once

#include <optional>
#include <string>

#include "shared/scenario/scenario.h"

namespace polyphony::sim {

// Of a prediction for this machine's cores: more ranks than cores is not modelled.
std::optional<std::string> shared_cores_note(const Scenario& scenario, int cores);

}  // namespace polyphony::sim
