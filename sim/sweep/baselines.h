// Layouts that a sweep compares its results with: the scenario's own, and those that are commonly
// chosen without a search.
//   layout of the file   The scenario's layout, if it is legal on the question's ranks; it need not
//                        fit in memory. Not one with actions of its own: searches do not list such.
//   rule of thumb        One pipeline over all modules, with as little model parallelism as fits:
//                        tensor parallelism up to 8 ranks of an NVLink domain, then pipeline
//                        stages. Selective recomputation, or full if nothing else fits; sequence
//                        parallelism, sharded optimizer, one sample per microbatch, 1F1B.
//                        Source: Narayanan et al., arXiv 2104.04473 §3 (takeaways 1 and 2);
//                        Korthikanti et al., arXiv 2205.05198
//   encoder in stage 0   The same, but all encoders run in the language module's first stage, whose
//                        blocks are split evenly, as in a framework that adds an encoder to an
//                        existing pipeline.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/screen/bound.h"
#include "shared/search/space.h"

namespace polyphony::sim {

struct Baseline {
  std::string name;
  Layout layout;
};
inline constexpr const char* kOwnLayout = "layout of the file";

// Returns the baselines that are legal: the scenario's own layout first, then those of the others
// whose memory fits according to the closed form.
std::vector<Baseline> baselines(const Scenario& scenario, Screen& screen);

}  // namespace polyphony::sim
