// The time by class, collective and GEMM of recorded traces, as tables and as CSV.
#pragma once

#include <string>

#include "traces/kineto/ranks.h"

namespace polyphony::sim {

std::string trace_text(const traces::RankSet& ranks);
// Columns: rank, step, class, wall_seconds, kernel_seconds, count. Step "all" is the whole file;
// class "idle" is included.
std::string trace_csv(const traces::RankSet& ranks);

}  // namespace polyphony::sim
