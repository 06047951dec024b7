// The HTML pages of a search: what was asked, the ranking, where the step time of the best layout
// of each placement goes, step time against memory, how far the search went; of `--vary` a map of
// the best placements over two variations, lines over one.
#pragma once

#include <string>
#include <vector>

#include "sim/pages/searched.h"
#include "traces/report/report.h"

namespace polyphony::sim {

std::vector<traces::Section> sweep_sections(const Searched& answer);
std::vector<traces::Section> vary_sections(const SearchedVaried& answer);
// Return a whole page; `question`: the scenario's file.
traces::Report sweep_page(const Searched& answer, const std::string& question);
traces::Report vary_page(const SearchedVaried& answer, const std::string& question);

}  // namespace polyphony::sim
