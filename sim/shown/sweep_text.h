// What a person reads of a sweep on stdout: what was looked at, and the ranking beside the baselines.
#pragma once

#include <cstddef>

#include "sim/sweep/sweep.h"

namespace polyphony::sim {

// Refusals in one line; every reason with `details`.
void print_counts(const Sweep& result, bool details);

struct RankingOptions {
  std::size_t most = 12;  // rows, beside the best of each placement and the baselines
  bool all = false;       // near relatives of a row too
  bool wide = false;      // layouts in full
};
// Rows of at most 100 columns, but for layouts that need more.
void print_ranking(const Scenario& scenario, const HardwareProfile& profile, const Sweep& result,
                   const RankingOptions& options);

}  // namespace polyphony::sim
