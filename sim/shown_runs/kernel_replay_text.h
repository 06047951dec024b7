// The replay of a profiler's traces, for stdout and as a page.
#pragma once

#include <string>

#include "sim/replay/kernel_replay.h"
#include "traces/report/report.h"

namespace polyphony::sim {

std::string kernel_replay_text(const KernelReplayAnswer& answer);
traces::Report kernel_replay_page(const KernelReplayAnswer& answer);

}  // namespace polyphony::sim
