// Fits the share of the link bandwidth that a ring collective reaches, from measured times of one
// collective at many sizes. The profile must use NCCL's protocols for collectives.
//
// The fitted parameter is collective_efficiency (one node) or fabric_efficiency (several nodes):
// the median, over arrays of at least kLeastBytes, of the efficiency at which ring_time()
// (shared/cost/collectives.h) equals the measured time. Smaller arrays are dominated by latency,
// whose protocol constants are NCCL's own and stay unchanged.
//
// Throws InputError if no row is large enough, if no efficiency explains a measured time, or if
// several nodes have one rank each.
#pragma once

#include "shared/hardware/hardware.h"
#include "traces/import/nccl_tests.h"

namespace polyphony::traces {

inline constexpr Bytes kLeastBytes{std::int64_t{16} << 20};

struct CollectiveFit {
  HardwareProfile profile;
  double before = 0, after = 0;  // the efficiency, in the prior and as fitted
  double error_before = 0,
         error_after = 0;  // mean |predicted ÷ measured − 1| over the fitted rows
  int rows = 0;            // number of fitted rows
};
// Returns `prior` with the fitted efficiency. Links are those of `cluster`; the numbers of ranks
// and nodes are those of the table. `file` is used in messages.
CollectiveFit fit_collective(const HardwareProfile& prior, const Cluster& cluster,
                             const CollectiveTimes& measured, const std::string& file);

}  // namespace polyphony::traces
