// One collective's times at many sizes -> how much of its link a ring reaches, in a profile whose
// collectives go by NCCL's protocols.
//   collective_efficiency (one node) or fabric_efficiency (several): the median, over arrays of
//   kLeastBytes and more, of what makes ring_time() (shared/cost/collectives.h) the measured time;
//   smaller arrays are latency, whose protocol constants are NCCL's own and stay.
// Errors: InputError: no row so large; a time that no efficiency explains; one rank a node of several.
#pragma once

#include "shared/hardware/hardware.h"
#include "traces/import/nccl_tests.h"

namespace polyphony::traces {

inline constexpr Bytes kLeastBytes{std::int64_t{16} << 20};

struct CollectiveFit {
  HardwareProfile profile;
  double before = 0, after = 0;  // the efficiency
  double error_before = 0,
         error_after = 0;  // mean |predicted ÷ measured − 1| over the rows fitted to
  int rows = 0;
};
// `cluster`: its links; ranks and nodes are the table's.
CollectiveFit fit_collective(const HardwareProfile& prior, const Cluster& cluster,
                             const CollectiveTimes& measured, const std::string& file);

}  // namespace polyphony::traces
