// How DIP divides modules and microbatches, once for all steps: sub-microbatch sizes, and the
// number of segments (sweeps over all ranks of a pipeline) of each module. Works on measured
// latencies only.
//   B  smallest sub-microbatch size that reaches 95 % of the best items per second measured
//   K  segments of a module: ⌊T / T of the fastest module⌋, with T its latency at size B
//   A module of K segments has K · ranks chunks; chunk c is on rank c % ranks.
// Choice where the paper leaves it open: layers are split into chunks by seconds
// (shared/split/balanced_plan.h), whether or not their number divides evenly.
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
// Returns B. `seen` must not be empty, and all latencies must be above 0.
int efficient_size(const std::vector<SizeLatency>& seen, double share = kEfficientShare);

// Returns K of each module, at least 1. Modules with zero latency get 1 segment and are not used as
// the fastest module.
std::vector<int> segment_counts(const std::vector<Seconds>& latencies);

// Returns the items of each sub-microbatch: ⌈items / size⌉ of them, as equal as possible, larger
// ones last.
std::vector<int> sub_microbatches(int items, int size);

}  // namespace polyphony
