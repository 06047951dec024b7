// Into what DIP cuts modules and microbatches before any step: sub-microbatch sizes and segments (sweeps
// over all ranks of a pipeline). Over measured numbers alone.
//   B  smallest size of a sub-microbatch that reaches 95 % of the best items a second seen
//   K  segments of a module: ⌊T / T of the quickest module⌋, T at B
//   a module of K segments has K · ranks chunks, chunk c on rank c % ranks
// Decided where the paper is silent: layers are cut into chunks by seconds (shared/split/balanced_plan.h),
// whether their number divides or not.
// Source: Wang et al., DIP, ASPLOS 2026 (arXiv 2504.14145v2), section 4.
#pragma once

#include <vector>

#include "shared/units.h"

namespace polyphony {

struct SizeLatency {
  int items = 0;
  Seconds latency{};
};
inline constexpr double kEfficientShare = 0.95;
// Needs a size; latencies above 0.
int efficient_size(const std::vector<SizeLatency>& seen, double share = kEfficientShare);

// At least 1 each. A module that takes no time has 1 and is nobody's measure.
std::vector<int> segment_counts(const std::vector<Seconds>& latencies);

// Items of each sub-microbatch: ⌈items / size⌉ of them, as equal as can be, the larger ones last.
std::vector<int> sub_microbatches(int items, int size);

}  // namespace polyphony
