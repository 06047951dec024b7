// Layouts as people who know Megatron-LM and PyTorch write them, for tables and pages:
//   "non-colocated: vision on 64 GPUs TP4 SP PP2 DP8, ZeRO-1; language on 448 GPUs TP8 SP PP7 DP8,
//    ZeRO-1, recompute layers 0-25; 1F1B, 128 microbatches"
// TP and DP are always named, CP, EP, PP and VPP where they are more than 1. The keys of a scenario
// file have other words for some of it: describe() in shared/model/layout.h.
#pragma once

#include <string>
#include <vector>

#include "shared/hardware/cluster.h"
#include "shared/model/layout.h"
#include "shared/model/model.h"

namespace polyphony::sim {

// "GPU", or "rank" of a cluster of CPUs.
const char* rank_word(const Cluster& cluster);
// "GPUs" or "ranks".
std::string ranks_word(const Cluster& cluster);

// `ranks`: what ranks are called, as ranks_word() has it.
std::string layout_words(const Model& model, const Layout& layout, const std::string& ranks);
inline std::string layout_words(const Model& model, const Layout& layout, const Cluster& cluster) {
  return layout_words(model, layout, ranks_word(cluster));
}

// One sentence for each placement among these, in the order of the enum; empty for a model of one
// module, which has only one placement.
std::string placement_legend(const Model& model, const std::vector<Placement>& shown);

}  // namespace polyphony::sim
