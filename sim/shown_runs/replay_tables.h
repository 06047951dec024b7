// The tables and lines of a replay, for stdout and for pages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/replay/replay.h"

namespace polyphony::sim {

struct ReplayTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};
std::string measured_line(const ReplayAnswer& answer);
std::string certainty_line(const ReplayAnswer& answer);
// Step, its parts and idle time, memory: before the change, and after it where there is one.
ReplayTable steps_table(const ReplayAnswer& answer);
ReplayTable differences_table(const std::vector<PathDifference>& differences, Seconds step);
// What, before, after, the difference and its share.
std::vector<std::string> difference_row(const std::string& what, Seconds before,
                                        const std::optional<Seconds>& after);
// By class, the longest first.
ReplayTable path_table(const ReplayedRun& run);
ReplayTable mixture_table(const traces::Mixture& mixture);

}  // namespace polyphony::sim
