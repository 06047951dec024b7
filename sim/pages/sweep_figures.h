// The charts of a search's page, and what they share with its tables.
#pragma once

#include <string>
#include <vector>

#include "sim/pages/searched.h"
#include "traces/report/report.h"

namespace polyphony::sim {

// Returns the step time; ~: estimated.
std::string step_text(const SearchedRow& row);
// Returns "-25", "+3", "0" of a ratio in per cent.
std::string signed_whole(double ratio);

// Returns the positions of the best row of each placement.
std::vector<std::size_t> best_of_each(const std::vector<SearchedRow>& ranked);
// Most rows of the page's table, not counting the best of each placement.
inline constexpr std::size_t kMostRows = 12;
// Returns the positions of the rows of the page's table: the first that differ in their main
// features, and the best of each placement.
std::vector<std::size_t> rows_shown(const std::vector<SearchedRow>& ranked);

// Draws where the step goes, for the best layout of each placement and the baselines.
traces::Figure breakdown_figure(const Searched& answer);
// Draws step time against memory. Needs at least one row.
traces::Figure time_and_memory_figure(const Searched& answer);

}  // namespace polyphony::sim
