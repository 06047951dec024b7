// Simulates a kernel graph: computes when each kernel runs, how long the steps take, and the
// longest path.
#pragma once

#include "traces/kernels/kernel_change.h"

namespace polyphony::traces {

// Returns the time of each point: the earliest time at which all its edges have passed. `lags`:
// durations by edge.
std::vector<Seconds> play(const KernelGraph& graph, const std::vector<Seconds>& lags);

// Durations of the steps. A step lasts from the end of everything launched before it to the end of
// everything launched in it. If nothing was launched before the first step, it begins with its
// first kernel. The steps follow each other without gaps.
struct StepWindows {
  Seconds begin{};                          // start of the first step
  std::vector<Seconds> all;                 // by step, over all ranks
  std::vector<std::vector<Seconds>> ranks;  // by rank and step, over the rank's own events
};
StepWindows step_windows(const KernelGraph& graph, const std::vector<Seconds>& times);

// Returns the time accounting of each rank's steps (kineto/device_times.h) at the simulated times.
std::vector<RankTimes> played_times(const KernelGraph& graph, const RankSet& ranks,
                                    const std::vector<Seconds>& times);

// One piece of the longest path. The pieces lead from the start of the first step to the last end,
// without gaps, in order of time.
struct KernelPathPiece {
  std::string label;
  std::uint32_t rank = 0;  // position in RankSet::traces
  Seconds start{}, end{};
};
std::vector<KernelPathPiece> longest_path(const KernelGraph& graph, const RankSet& ranks,
                                          const std::vector<Seconds>& lags,
                                          const std::vector<Seconds>& times);

// Returns the seconds of the steps' kernels, copies and collectives by class and origin, without
// waiting.
Mixture mixture(const KernelGraph& graph, const RankSet& ranks, const ChangedLags& lags);

}  // namespace polyphony::traces
