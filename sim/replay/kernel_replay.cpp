#include "sim/replay/kernel_replay.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "shared/text/figure_text.h"
#include "sim/replay/shown.h"

namespace polyphony::sim {
namespace {

std::vector<PathDifference> path_of(const traces::KernelGraph& graph, const traces::RankSet& ranks,
                                    const std::vector<Seconds>& lags,
                                    const std::vector<Seconds>& times) {
  std::map<std::string, Seconds> by_label;
  for (const traces::KernelPathPiece& piece : traces::longest_path(graph, ranks, lags, times))
    by_label[piece.label] += piece.end - piece.start;
  std::vector<PathDifference> path;
  for (const auto& [label, time] : by_label)
    path.push_back({label, time / static_cast<double>(graph.steps.size()), {}});
  std::stable_sort(path.begin(), path.end(), [](const PathDifference& a, const PathDifference& b) {
    return a.before > b.before;
  });
  return path;
}

std::vector<Seconds> rank_medians(const traces::StepWindows& windows) {
  std::vector<Seconds> medians;
  for (const std::vector<Seconds>& steps : windows.ranks) medians.push_back(traces::median(steps));
  return medians;
}

struct Moments {
  std::vector<Seconds> times;
  traces::StepWindows windows;
};
Moments moments_of(const traces::RecordedGraph& recorded, const traces::ChangedLags& lags) {
  Moments moments{traces::play(recorded.graph, lags.lags), {}};
  moments.windows = traces::step_windows(recorded.graph, moments.times);
  return moments;
}

PlayedKernels played(const traces::RecordedGraph& recorded, const traces::RankSet& ranks,
                     const traces::ChangedLags& lags, const Moments& moments, std::size_t step) {
  const traces::KernelGraph& graph = recorded.graph;
  PlayedKernels result;
  result.steps = traces::spread(moments.windows.all);
  result.ranks = rank_medians(moments.windows);
  for (const traces::RankTimes& rank : traces::played_times(graph, ranks, moments.times))
    result.times.push_back(rank.whole);
  result.path = path_of(graph, ranks, lags.lags, moments.times);
  result.mixture = traces::mixture(graph, ranks, lags);
  result.shown = moments.windows.all[step];
  Seconds begin = moments.windows.begin;
  for (std::size_t s = 0; s < step; ++s) begin += moments.windows.all[s];
  for (std::size_t rank = 0; rank < ranks.traces.size(); ++rank) {
    std::vector<PlayedEvent>& events = result.events.emplace_back();
    for (std::size_t i = 0; i < graph.starts[rank].size(); ++i) {
      if (graph.windows[rank][i] != static_cast<std::int32_t>(step)) continue;
      const traces::DeviceEvent& event = ranks.traces[rank].events[i];
      events.push_back({event.stream, event.kind, moments.times[graph.starts[rank][i]] - begin,
                        moments.times[graph.ends[rank][i]] - begin});
    }
  }
  return result;
}

std::vector<PathDifference> differences(const PlayedKernels& before, const PlayedKernels& after) {
  std::map<std::string, PathDifference> by_label;
  for (const PathDifference& row : before.path) by_label[row.label].before = row.before;
  for (const PathDifference& row : after.path) by_label[row.label].after = row.before;
  return largest_first(std::move(by_label));
}

double relative(Seconds replayed, Seconds measured) {
  return measured.count() > 0 ? replayed / measured - 1 : 0;
}

}  // namespace

KernelReplayAnswer replay_kernels(const traces::RankSet& ranks, const traces::KernelChange& change,
                                  const std::vector<std::string>& said) {
  const traces::RecordedGraph recorded = traces::recorded_graph(ranks);
  KernelReplayAnswer answer;
  for (const traces::DeviceTrace& trace : ranks.traces) {
    answer.files.push_back(trace.file);
    answer.ranks.push_back(trace.rank.value_or(0));
  }
  answer.world = ranks.traces.front().world;
  answer.device = ranks.traces.front().device;
  answer.said = said;
  answer.notes = recorded.graph.notes;
  const traces::StepWindows measured = traces::step_windows(recorded.graph, recorded.times);
  answer.measured = traces::spread(measured.all);
  const traces::ChangedLags alone = traces::changed_lags(recorded, ranks, {});
  const Moments before = moments_of(recorded, alone);
  std::size_t step = middle_of(before.windows.all);
  if (change.changes()) {
    const traces::ChangedLags lags = traces::changed_lags(recorded, ranks, change);
    const Moments after = moments_of(recorded, lags);
    step = middle_of(after.windows.all);
    answer.after = played(recorded, ranks, lags, after, step);
  }
  answer.before = played(recorded, ranks, alone, before, step);
  answer.replay_error = relative(answer.before.steps.median, answer.measured.median);
  const std::vector<Seconds> own = rank_medians(measured);
  for (std::size_t rank = 0; rank < own.size(); ++rank)
    answer.rank_error =
        std::max(answer.rank_error, std::abs(relative(answer.before.ranks[rank], own[rank])));
  if (answer.after) answer.differences = differences(answer.before, *answer.after);
  return answer;
}

}  // namespace polyphony::sim
