// A profiler's traces replayed, as people read it: for the terminal and as a page.
#pragma once

#include <string>

#include "sim/replay/kernel_replay.h"
#include "traces/report/report.h"

namespace polyphony::sim {

std::string kernel_replay_text(const KernelReplayAnswer& answer);
traces::Report kernel_replay_page(const KernelReplayAnswer& answer);

}  // namespace polyphony::sim
