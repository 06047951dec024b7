// What people would run without a search: what an answer is set beside.
//   rule of thumb        one pipeline over all modules; tensor parallelism as wide as a domain, up to
//                        8, with sequence parallelism; the fewest stages and then the least
//                        recomputation that fit; optimizer sharded, one sample a microbatch, 1F1B.
//                        Source: the advice of Megatron-LM's guide (Narayanan et al., arXiv
//                        2104.04473 §3: tensor parallelism inside a node, then pipeline, then data)
//   encoder in stage 0   the same with every encoder whole before the language module's first
//                        stage, blocks split evenly: what a framework does that puts an encoder
//                        into an existing pipeline
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/search/bound.h"
#include "shared/search/space.h"

namespace polyphony::sim {

struct Baseline {
  std::string name;
  Layout layout;
};
// Those that are legal and fit by the closed form.
std::vector<Baseline> baselines(const Scenario& scenario, const HardwareProfile& profile,
                                Screen& screen);

}  // namespace polyphony::sim
