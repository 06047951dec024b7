// The same question asked of several machines, data or models: where does the best layout change?
#pragma once

#include <string>
#include <vector>

#include "sim/sweep/sweep.h"

namespace polyphony::sim {

struct Variation {
  std::string path;                 // "cluster.nic"
  std::vector<std::string> values;  // "200Gbps", "400Gbps"
};

struct Asked {
  std::vector<std::string> values;  // by variation
  std::string why_not;              // no answer: why
  Sweep answer;
  Model model;
};

// Of all combinations of values, the last variation fastest; fewer where it was stopped.
struct Varied {
  std::vector<Variation> variations;
  std::vector<Asked> asked;
};

// The fastest of a placement, if there is one.
const Candidate* best_of(const Sweep& answer, Placement placement);

}  // namespace polyphony::sim
