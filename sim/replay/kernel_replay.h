// A profiler's traces played again, and once more with something changed: what `polyphony replay TRACE...` says.
//   Steps are recorded ones, one after another as they ran; what a step is: traces/kernels/played_kernels.h.
//   path       seconds a step of the longest path, by class: they add up to the mean step
//   No interval: a profiler's traces state no errors; the steps' own spread stands beside the median.
// What is inferred and what is not seen: traces/kernels/kernel_graph.h; what a change changes: kernel_change.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/replay/replay.h"
#include "traces/kernels/played_kernels.h"

namespace polyphony::sim {

// A kernel, copy or collective of the step shown.
struct PlayedEvent {
  std::int32_t stream = 0;
  traces::KernelClass kind{};
  Seconds start{}, end{};  // after the end of what was launched before the step
};

struct PlayedKernels {
  traces::Spread steps;                    // over all ranks
  std::vector<Seconds> ranks;              // by rank: its own median step
  std::vector<traces::DeviceTimes> times;  // by rank: of all steps
  std::vector<PathDifference> path;        // `before`: seconds a step; the longest first
  traces::Mixture mixture;                 // seconds of all steps and ranks
  Seconds shown{};                         // the step that is drawn: that of the changed median
  std::vector<std::vector<PlayedEvent>> events;  // of it, by rank
};

struct KernelReplayAnswer {
  std::vector<std::string> files;  // by rank
  std::vector<int> ranks;          // their numbers
  std::optional<int> world;
  std::string device;
  std::vector<std::string> said;
  traces::Spread measured;
  double replay_error = 0;  // (replayed alone - measured) / measured
  double rank_error = 0;    // the largest of any rank, either way
  PlayedKernels before;
  std::optional<PlayedKernels> after;
  std::vector<PathDifference> differences;  // a step; the largest first
  std::vector<std::string> notes;
};

KernelReplayAnswer replay_kernels(const traces::RankSet& ranks, const traces::KernelChange& change,
                                  const std::vector<std::string>& said);

}  // namespace polyphony::sim
