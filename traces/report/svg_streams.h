// What devices do over time, of a profiler's kernels: a row per rank, in it a lane per stream.
//   Bars that together are too thin to see are drawn as one, in the longest one's colour.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/units.h"

namespace polyphony::traces {

struct StreamBar {
  Seconds start{}, end{};
  std::string classes, hover;  // svg.h's; what it is
};
struct StreamLane {
  std::string rank;  // "rank 0": the lanes of one follow each other
  std::vector<StreamBar> bars;
};
struct StreamsOptions {
  std::string title;
  double width = 1000;
  Seconds span{};  // time axis
  std::vector<std::pair<std::string, std::string>> class_and_name;
};
std::string streams_chart(const std::vector<StreamLane>& lanes, const StreamsOptions& options);

}  // namespace polyphony::traces
