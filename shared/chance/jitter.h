// A draw of the same step on another day: the same Program, another CostTable.
//   Every node's time · exp(step · Z + op · z) with the deviations of its activity kind
//   (shared/hardware/certainty.h); Z depends on (seed, kind), z on (seed, node). A node with flows:
//   its delay and its bytes. The median factor is 1, as profiles are fitted to medians. Updates
//   count as compute. Does not model: hiccups beyond a log-normal, ranks that stay slow, kinds that
//   slow down together.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/cost/cost.h"
#include "shared/hardware/certainty.h"

namespace polyphony {

CostTable draw_jitter(const Compiled& compiled, const CostTable& costs, const Jitter& jitter,
                      std::uint64_t seed);
// Into a table that keeps its memory between draws.
void draw_jitter(const Compiled& compiled, const CostTable& costs, const Jitter& jitter,
                 std::uint64_t seed, CostTable& drawn);

// Steps of the estimate under seeds first, first + 1, …, sorted.
std::vector<Seconds> jittered_steps(const Compiled& compiled, const CostTable& costs,
                                    const Jitter& jitter, std::uint64_t first, std::size_t count);

}  // namespace polyphony
