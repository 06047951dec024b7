// Explains why a layout does not fit in memory, and finds a small change that makes it fit. Changes
// are evaluated with the estimate (folded to one rank per stage if the layout allows).
//
// The changes apply to the modules on the rank with the largest peak. They are tried in this order:
// smaller microbatches; a sharded optimizer; selective, then full recomputation; optimizer sharding
// and recomputation together; twice the pipeline stages; sharding of everything; twice the
// tensor-parallel ranks; then combinations. The first change that fits is reported, which need not
// be the fastest; `polyphony sweep` searches for that.
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
// Returns the legal changes of the layout, smallest first. `worst`: the rank with the largest peak.
std::vector<Change> nearest_changes(const Scenario& scenario, const Layout& layout,
                                    const Prediction& prediction, Rank worst);

struct Fitting {
  std::optional<Change> fits;  // the first that fits
  Bytes memory{};              // peak memory of that change, or of the smallest if none fits
  Seconds step{};              // its estimated step time
  std::string smallest;        // the change with the least memory, if none fits
  int tried = 0;               // number of changes evaluated
};
// Tries the changes above until one fits.
Fitting find_fitting(const Scenario& scenario, const Layout& layout, const Prediction& prediction,
                     Rank worst, const HardwareProfile& profile);

// Returns a text such as
// "out of memory: language stage 0 needs 125 GiB of 80.0 GiB (parameters …); fits: recompute full".
std::string out_of_memory_text(const Scenario& scenario, const Layout& layout,
                               const Prediction& prediction, const HardwareProfile& profile);

}  // namespace polyphony::sim
