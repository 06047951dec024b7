// Draws the activity of devices over time from a profiler's kernels: a row per rank with a lane per
// stream. Bars that are too thin to see are merged into one, in the color of the longest of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/units.h"

namespace polyphony::traces {

struct StreamBar {
  Seconds start{}, end{};
  std::string classes, hover;  // classes of svg_style(); text of the tooltip
};
struct StreamLane {
  std::string rank;  // "rank 0"; the lanes of a rank must follow each other
  std::vector<StreamBar> bars;
};
struct StreamsOptions {
  std::string title;
  double width = 1000;
  Seconds span{};  // length of the time axis
  std::vector<std::pair<std::string, std::string>> class_and_name;
};
std::string streams_chart(const std::vector<StreamLane>& lanes, const StreamsOptions& options);

}  // namespace polyphony::traces
