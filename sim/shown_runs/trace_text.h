// The time by class, collective and GEMM of recorded traces, as tables and as CSV.
#pragma once

#include <string>

#include "traces/kineto/ranks.h"

namespace polyphony::sim {

// Returns the beginning of a kernel's name: names of templates are long.
std::string short_kernel_name(const std::string& name);

std::string trace_text(const traces::RankSet& ranks);
// Columns: rank, step, class, wall_seconds, kernel_seconds, count. Step "all" is the whole file;
// class "idle" is included.
std::string trace_csv(const traces::RankSet& ranks);

}  // namespace polyphony::sim
