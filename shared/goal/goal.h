// What is best, for whom: the objectives of a sweep, what may be rented or changed for them, and how
// often a long run fails. The scenario's key "goal".
//   step            seconds of a step; of another global batch, what as many samples as the
//                   scenario's take
//   tokens_per_gpu  language tokens a second and allocated rank: idle ones count
//   days, dollars   of `tokens` language tokens on whole nodes, failures included
//                   (shared/goal/campaign.h)
//   p95             95th percentile of the step over batches of varying data
//   memory          of the worst rank; beside another objective only
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/units.h"

namespace polyphony {

enum class Objective : std::uint8_t { step, tokens_per_gpu, days, dollars, p95, memory };
constexpr Objective last_of(Objective) { return Objective::memory; }
const char* name(Objective objective);

// Sources of what is assumed where nothing is said:
//   every            Llama 3 (arXiv 2407.21783, section 3.3.4): 419 unexpected interruptions of
//                    16,384 GPUs in 54 days, 50,700 hours of a GPU for each
//   checkpoint_rate  the same, section 3.3.1: 2 TB/s sustained for 2,048 nodes
//   restart          MegaScale (arXiv 2402.15627): under 10 minutes to find and diagnose a failure
struct Failures {
  Seconds every{50700.0 * 3600};        // of one rank; all of them fail independently
  BytesPerSecond checkpoint_rate{1e9};  // to storage, of a node; all write at once
  Seconds restart{600};                 // until the last checkpoint is loaded
  bool operator==(const Failures&) const = default;
};

struct Goal {
  std::vector<Objective> objectives{Objective::step};  // two: their Pareto front
  std::vector<int> nodes;          // how many may be taken, of the cluster; empty: all of them
  double global_batch_within = 0;  // share by which a layout may change the global batch
  double tokens = 0;               // of the language module, to train on; 0: not said
  Failures failures;
  bool operator==(const Goal&) const = default;
};
bool wants(const Goal& goal, Objective objective);

}  // namespace polyphony
