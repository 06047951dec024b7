// The answer of `polyphony replay TRACE... --format json` and its schema (sim/text/json_keys.h).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sim/replay/kernel_replay.h"

namespace polyphony::sim {

nlohmann::json to_json(const KernelReplayAnswer& answer);
std::string kernel_replay_schema();

}  // namespace polyphony::sim
