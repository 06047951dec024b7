// A replay as stdout shows it (before and after, what explains the difference, where durations come
// from), and as a page with both Gantt charts.
#pragma once

#include <string>
#include <vector>

#include "sim/replay/replay.h"
#include "traces/report/report.h"

namespace polyphony::sim {

std::string replay_text(const ReplayAnswer& answer);
// One line per answer.
std::string replays_text(const std::vector<ReplayAnswer>& answers);
traces::Report replay_page(const std::vector<ReplayAnswer>& answers);

}  // namespace polyphony::sim
