// What recorded traces say, as tables and as CSV.
#pragma once

#include <string>

#include "traces/kineto/ranks.h"

namespace polyphony::sim {

std::string trace_text(const traces::RankSet& ranks);
// rank, step, class, wall_seconds, kernel_seconds, count; step "all": of the whole file, class "idle", too.
std::string trace_csv(const traces::RankSet& ranks);

}  // namespace polyphony::sim
