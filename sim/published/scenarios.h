// Published measurements in scenario files, for layouts that a CSV row cannot describe (several
// modules). The list "published" in the file has values measured with the scenario's layout:
//   {"what": "step_time", "value": "2.733s", "source": "…", "stack": "megatron-core",
//    "attention": "flash", "assumed": ["recompute"]}
// The id of a result is the file's name, "." and what was measured (with a number if it was
// measured several times). The block is the name up to its first "_".
#pragma once

#include <string>
#include <vector>

#include "sim/published/run.h"

namespace polyphony::sim {

// Predicts the scenario and returns one result per value. `text` is the text of the file itself;
// "published" is not inherited from a file that it extends.
std::vector<RowResult> run_scenario(const std::string& text, const std::string& file,
                                    const Scenario& scenario, const Overrides& overrides);

}  // namespace polyphony::sim
