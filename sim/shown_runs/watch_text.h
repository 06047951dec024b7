// The answer of `polyphony watch` as stdout shows it.
#pragma once

#include <string>

#include "sim/evidence/watch.h"

namespace polyphony::sim {

// Returns one line, without the line break: "step 21: LEFT the predicted interval, …".
std::string event_text(const WatchEvent& event);
// Returns the lines that follow the events: steps, their typical time, and whether the job is
// inside the predicted interval.
std::string watch_text(const WatchReport& report, const Expected& expected);

}  // namespace polyphony::sim
