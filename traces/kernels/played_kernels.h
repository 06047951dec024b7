// A graph played: when each kernel runs, how long steps last, what the longest path is made of.
#pragma once

#include "traces/kernels/kernel_change.h"

namespace polyphony::traces {

// By point: as soon as all that it follows has passed.
std::vector<Seconds> play(const KernelGraph& graph, const std::vector<Seconds>& lags);

// Of each step the time from the end of all that was launched before it to the end of what was launched in it;
// of the first, where nothing was before, from its first kernel's start. They follow each other without gaps.
struct StepWindows {
  Seconds begin{};                          // of the first
  std::vector<Seconds> all;                 // over all ranks
  std::vector<std::vector<Seconds>> ranks;  // by rank, of its own events
};
StepWindows step_windows(const KernelGraph& graph, const std::vector<Seconds>& times);

// The ranks' traces with the times that were played, of the steps.
std::vector<RankTimes> played_times(const KernelGraph& graph, const RankSet& ranks,
                                    const std::vector<Seconds>& times);

// From the steps' begin to the last end, without gaps; in the order of time.
struct KernelPathPiece {
  std::string label;
  std::uint32_t rank = 0;  // position in RankSet::traces
  Seconds start{}, end{};
};
std::vector<KernelPathPiece> longest_path(const KernelGraph& graph, const RankSet& ranks,
                                          const std::vector<Seconds>& lags,
                                          const std::vector<Seconds>& times);

// Seconds of the steps' kernels, copies and collectives by class and origin. Waiting is in none.
Mixture mixture(const KernelGraph& graph, const RankSet& ranks, const ChangedLags& lags);

}  // namespace polyphony::traces
