// The answer of a sweep as stdout shows it: what was searched, the ranking next to the baselines,
// and what to do with it.
#pragma once

#include <cstddef>
#include <string>

#include "sim/sweep/sweep.h"

namespace polyphony::sim {

// Prints what was searched: combinations, what does not fit, why combinations are illegal. Without
// `details` only what explains an empty ranking, and work that failed.
void print_counts(const Sweep& result, bool details);

struct RankingOptions {
  std::size_t most =
      12;             // rows, in addition to the best of each placement, the simplest and baselines
  bool all = false;   // near relatives of a row too
  bool wide = false;  // layouts in the words of a scenario file
  bool details = false;  // where the other placements lose, and by how much the search may be wrong
};
// Prints one row per layout, the lines that explain the table, and which rows to measure. Layouts
// stand at the end of a row where the screen is wide enough, else on a line below it.
void print_ranking(const Scenario& scenario, const HardwareProfile& profile, const Sweep& result,
                   const RankingOptions& options);

// "70.2 GiB of 78.5 GiB".
std::string memory_of_device(Bytes memory, Bytes device);
// Returns what predictions leave out of a device's memory: "fragmentation", `joint`, " is not
// modeled". `libraries`: what they count for libraries; 0: these are left out, too.
std::string not_modeled(Bytes libraries, const std::string& joint = "");
// What the margin is for, once an answer: "5 % of the memory stays free for …". `set_by`: the
// option or the key of the scenario that sets it.
std::string margin_text(const Scenario& scenario, const std::string& set_by, Bytes libraries);

}  // namespace polyphony::sim
