// The answer of `polyphony validate` as stdout shows it, in its order; intervals and probabilities
// are in coverage_text.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/judged/held_out.h"
#include "sim/judged/summary.h"

namespace polyphony::sim {

// Returns one row a used result: measured, predicted, error.
std::string every_row_text(const std::vector<RowResult>& results);
// Returns the errors by block, complete and assumed rows apart, and what the columns mean. With
// `held_out` also the errors of rows that a refit did not see; empty if all of a block were seen.
std::string summary_text(const std::vector<BlockSummary>& summaries,
                         const std::optional<HeldOut>& held_out);
// Returns a line with the software stack of each block's memory figures: the same layout needs
// different memory under others. Empty without such figures.
std::string memory_stacks_text(const std::vector<RowResult>& results);
std::string parts_text(const std::vector<Part>& parts);
// Returns how many rows of each block are used, and the reasons of those that are not.
std::string left_out_text(const std::vector<RowResult>& results,
                          const std::vector<BlockSummary>& summaries);

}  // namespace polyphony::sim
