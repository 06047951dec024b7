// A note for predictions about this machine, if its ranks would have to share CPU cores.
#pragma once

#include <optional>
#include <string>

#include "shared/scenario/scenario.h"

namespace polyphony::sim {

// Returns a note if the scenario runs on CPU cores and has more ranks than this machine has
// `cores`: that is not modeled. `cores` 0: unknown, no note.
std::optional<std::string> shared_cores_note(const Scenario& scenario, int cores);

}  // namespace polyphony::sim
