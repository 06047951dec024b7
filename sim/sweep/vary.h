// The result of `polyphony sweep --vary`: the same search for several values of the cluster, the
// data or the model. Shows where the best layout changes.
#pragma once

#include <string>
#include <vector>

#include "shared/scenario_io/overrides_json.h"
#include "sim/sweep/sweep.h"

namespace polyphony::sim {

struct Variation {
  std::string path;                 // "cluster.nic"
  std::vector<std::string> values;  // "200Gbps", "400Gbps"
};

// One combination of values, and its answer.
struct Asked {
  std::vector<std::string> values;  // by variation
  std::string why_not;              // why there is no answer; empty: there is one
  Sweep answer;
  Model model;
};

// All combinations of values; the value of the last variation changes fastest. Fewer if stopped.
struct Varied {
  std::vector<Variation> variations;
  std::vector<Asked> asked;
};

// Returns every combination of values, in the order of Varied.
std::vector<std::vector<std::string>> combinations(const std::vector<Variation>& variations);
// Returns the overrides of one of them. Throws InputError as parse_override() does.
std::vector<Override> overrides_of(const std::vector<Variation>& variations,
                                   const std::vector<std::string>& values);

// Returns the fastest candidate of a placement, or null if there is none.
const Candidate* best_of(const Sweep& answer, Placement placement);

}  // namespace polyphony::sim
