// The sections of a page (sim/pages/sweep_page.h) for `--vary`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "traces/report/report.h"

namespace polyphony::sim {

std::vector<traces::Section> vary_sections(const nlohmann::json& answer);
// "-25", "+3", "0" of a ratio in per cent.
std::string signed_whole(const nlohmann::json& ratio);

}  // namespace polyphony::sim
