// Replays a profiler's traces, as recorded and with something changed: `polyphony replay TRACE...`.
//   Steps are the recorded ones, in their order; traces/kernels/played_kernels.h defines a step.
//   path       seconds per step on the longest path, by class; they add up to the mean step
//   There is no error interval, since a profiler's traces state no errors; the spread of the steps
//   is given with the median.
// What is inferred and what cannot be seen: traces/kernels/kernel_graph.h. What a change changes:
// traces/kernels/kernel_change.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/replay/replay.h"
#include "traces/kernels/played_kernels.h"

namespace polyphony::sim {

// A kernel, copy or collective of the step that is drawn.
struct PlayedEvent {
  std::int32_t stream = 0;
  traces::KernelClass kind{};
  Seconds start{}, end{};  // from the end of what was launched before the step
};

struct PlayedKernels {
  traces::Spread steps;                    // over all ranks
  std::vector<Seconds> ranks;              // by rank: the median of its own steps
  std::vector<traces::DeviceTimes> times;  // by rank: over all steps
  std::vector<PathDifference> path;        // `before`: seconds per step; the longest first
  traces::Mixture mixture;                 // seconds, over all steps and ranks
  Seconds shown{};  // time of the step that is drawn: the median step of the changed replay
  std::vector<std::vector<PlayedEvent>> events;  // of that step, by rank
};

struct KernelReplayAnswer {
  std::vector<std::string> files;  // by rank
  std::vector<int> ranks;          // rank numbers of the recorded ranks
  std::optional<int> world;        // ranks of the job
  std::string device;
  std::vector<std::string> said;  // the changes, as on the command line
  traces::Spread measured;
  double replay_error = 0;  // (replayed unchanged - measured) / measured
  double rank_error = 0;    // the largest error of any rank, as an absolute value
  PlayedKernels before;
  std::optional<PlayedKernels> after;
  std::vector<PathDifference> differences;  // per step; the largest first
  std::vector<std::string> notes;
};

// Replays the traces without and, if `change` changes something, with the change. `said`: the
// changes as on the command line.
KernelReplayAnswer replay_kernels(const traces::RankSet& ranks, const traces::KernelChange& change,
                                  const std::vector<std::string>& said);

}  // namespace polyphony::sim
