// Scenario files with a "published" list: values that somebody measured of the scenario's layout,
// for layouts that no row of numbers can say (several modules). One result per value.
//   {"what": "step_time", "value": "2.733s", "source": "…", "stack": "megatron-core",
//    "assumed": ["recompute"]}
//   id: the file's name, "." and what is measured (and which, when measured again); block: the name
//   up to its first "_".
#pragma once

#include <string>
#include <vector>

#include "sim/published/run.h"

namespace polyphony::sim {

// `text` is the file's own: "published" is not taken from a file that it extends.
std::vector<RowResult> run_scenario(const std::string& text, const std::string& file,
                                    const Scenario& scenario, const Overrides& overrides);

}  // namespace polyphony::sim
