// Published rows, predicted and judged, as JSON: every row, every block, every part.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/judged/held_out.h"
#include "sim/judged/smallest.h"
#include "sim/judged/summary.h"

namespace polyphony::sim {

nlohmann::ordered_json to_json(const std::vector<RowResult>& results,
                               const std::vector<BlockSummary>& summaries,
                               const std::optional<HeldOut>& held_out);

// Of `--fit-smallest`.
nlohmann::json to_json(const std::vector<SmallestFit>& fits);
std::string smallest_schema();

}  // namespace polyphony::sim
