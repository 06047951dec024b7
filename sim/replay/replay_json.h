// The answer of `polyphony replay --format json` and its schema (sim/text/json_keys.h).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/replay/replay.h"

namespace polyphony::sim {

// One answer per question; `--vary` asks several.
nlohmann::json to_json(const std::vector<ReplayAnswer>& answers);
std::string replay_schema();

}  // namespace polyphony::sim
