// A layout that does not fit in memory: what its worst stage holds, and the nearest change that
// would fit, tried with the estimate (folded to a rank a stage where the layout allows).
//   Tried in this order, of the modules on the worst rank: smaller microbatches; a sharded
//   optimizer; recomputation, selective and full; both; twice the pipeline stages; everything
//   sharded; twice the tensor-parallel ranks; then these together. The first that fits is named,
//   not the fastest: `polyphony sweep` looks for that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/prediction/figures.h"

namespace polyphony::sim {

struct Change {
  std::string what;  // "recompute full, shard optimizer"
  Layout layout;
};
// Legal ones, nearest first.
std::vector<Change> nearest_changes(const Scenario& scenario, const Layout& layout,
                                    const Prediction& prediction, Rank worst);

struct Fitting {
  std::optional<Change> fits;  // the first that fits
  Bytes memory{};              // of it, or of the smallest that does not
  Seconds step{};
  std::string smallest;  // when none fits
  int tried = 0;
};
Fitting find_fitting(const Scenario& scenario, const Layout& layout, const Prediction& prediction,
                     Rank worst, const HardwareProfile& profile);

// "out of memory: language stage 0 needs 125 GiB of 80.0 GiB (parameters …); fits: recompute full".
std::string out_of_memory_text(const Scenario& scenario, const Layout& layout,
                               const Prediction& prediction, const HardwareProfile& profile);

}  // namespace polyphony::sim
