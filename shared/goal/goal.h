// The optimization objectives of a sweep, the resources that it may vary, and how often a long run
// fails: the key "goal" of a scenario.
//   step            seconds per step; if the global batch varies, seconds for as many samples as
//                   the scenario's global batch has
//   tokens_per_gpu  language tokens per second and allocated rank; idle ranks count
//   days, dollars   to train on `tokens` language tokens on whole nodes, failures included
//                   (shared/goal/campaign.h)
//   p95             95th percentile of the step time over batches of varying data
//   memory          of the rank that needs most; only together with another objective
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/enum_names.h"
#include "shared/units.h"

namespace polyphony {

enum class Objective : std::uint8_t { step, tokens_per_gpu, days, dollars, p95, memory };
constexpr auto names(Objective) {
  return names_of<Objective>("step", "tokens_per_gpu", "days", "dollars", "p95", "memory");
}

// Failures of a long run. Sources of the defaults:
//   every            Llama 3 (arXiv 2407.21783, section 3.3.4): 419 unexpected interruptions of
//                    16,384 GPUs in 54 days, or 50,700 GPU hours per interruption
//   checkpoint_rate  the same, section 3.3.1: 2 TB/s sustained for 2,048 nodes
//   restart          MegaScale (arXiv 2402.15627): under 10 minutes to find and diagnose a failure
struct Failures {
  Seconds every{50700.0 * 3600};        // mean time between failures of one rank; ranks independent
  BytesPerSecond checkpoint_rate{1e9};  // to storage, per node; all nodes write at once
  Seconds restart{600};                 // from a failure until the last checkpoint is loaded
  bool operator==(const Failures&) const = default;
};

struct Goal {
  std::vector<Objective> objectives{Objective::step};  // two: their Pareto front
  std::vector<int> nodes;          // allowed numbers of the cluster's nodes; empty: all nodes
  double global_batch_within = 0;  // share by which a layout may change the global batch
  double tokens = 0;               // language tokens to train on; 0: not given
  Failures failures;
  bool operator==(const Goal&) const = default;
};
// Returns whether the objective is among the goal's objectives.
bool wants(const Goal& goal, Objective objective);

}  // namespace polyphony
