// Random variation of a step between runs (jitter): the same Program with another CostTable.
//   The time of every node is multiplied by exp(step · Z + op · z), with the deviations of its
//   activity kind (shared/hardware/certainty.h). Z depends on (seed, kind), z on (seed, node), both
//   standard normal. For a node with flows, its delay and its bytes are multiplied. The median
//   factor is 1, as profiles are fitted to medians. Optimizer updates count as compute.
//
//   Does not model: hiccups beyond a log-normal distribution, ranks that stay slow, kinds of
//   activity that slow down together.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/cost/cost.h"
#include "shared/hardware/certainty.h"

namespace polyphony {

// Returns one random CostTable.
CostTable draw_jitter(const Compiled& compiled, const CostTable& costs, const Jitter& jitter,
                      std::uint64_t seed);
// Does the same into an existing table, so that no memory is allocated per draw.
void draw_jitter(const Compiled& compiled, const CostTable& costs, const Jitter& jitter,
                 std::uint64_t seed, CostTable& drawn);

// Returns the estimated step times under the seeds first, first + 1, …, sorted.
std::vector<Seconds> jittered_steps(const Compiled& compiled, const CostTable& costs,
                                    const Jitter& jitter, std::uint64_t first, std::size_t count);

}  // namespace polyphony
