// A replay as people read it: before and after side by side, what explains the difference, where the
// durations are from; as a page with both Gantts.
#pragma once

#include <string>
#include <vector>

#include "sim/replay/replay.h"
#include "traces/report/report.h"

namespace polyphony::sim {

std::string replay_text(const ReplayAnswer& answer);
// A line an answer.
std::string replays_text(const std::vector<ReplayAnswer>& answers);
traces::Report replay_page(const std::vector<ReplayAnswer>& answers);

}  // namespace polyphony::sim
