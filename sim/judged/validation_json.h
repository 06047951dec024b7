// JSON of the predictions of published rows: every row, and the summaries by block and part.
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

// Output of `polyphony validate --fit-smallest`, and its JSON Schema.
nlohmann::json to_json(const std::vector<SmallestFit>& fits);
std::string smallest_schema();

}  // namespace polyphony::sim
