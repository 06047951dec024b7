// What people would run without a search: what an answer is set beside.
//   rule of thumb        one pipeline over all modules, as little model parallelism as fits: tensor
//                        parallelism up to 8 ranks of a domain, then stages; recomputation of
//                        attention, or of all where nothing else fits; sequence parallelism, optimizer
//                        sharded, one sample a microbatch, 1F1B. Source: Narayanan et al., arXiv
//                        2104.04473 §3 (takeaways 1 and 2); Korthikanti et al., arXiv 2205.05198
//   encoder in stage 0   the same with every encoder whole before the language module's first
//                        stage, blocks split evenly: what a framework does that puts an encoder
//                        into an existing pipeline
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
// Those that are legal and fit by the closed form.
std::vector<Baseline> baselines(const Scenario& scenario, Screen& screen);

}  // namespace polyphony::sim
