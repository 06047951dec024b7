#include "traces/kernels/played_kernels.h"

#include <algorithm>
#include <cmath>

namespace polyphony::traces {
namespace {

// Returns the ends of the steps of one rank, beginning with the end of the events before the first
// step.
std::vector<std::optional<Seconds>> ends_of(const KernelGraph& graph,
                                            const std::vector<Seconds>& times, std::size_t rank) {
  std::vector<std::optional<Seconds>> ends(graph.steps.size() + 1);
  for (std::size_t i = 0; i < graph.ends[rank].size(); ++i) {
    auto& end = ends[static_cast<std::size_t>(graph.windows[rank][i] + 1)];
    end = std::max(end.value_or(Seconds{}), times[graph.ends[rank][i]]);
  }
  if (!ends[0]) {
    ends[0] = times[graph.starts[rank].front()];
    for (const std::uint32_t start : graph.starts[rank]) ends[0] = std::min(*ends[0], times[start]);
  }
  for (std::size_t w = 1; w < ends.size(); ++w)
    ends[w] = std::max(ends[w].value_or(Seconds{}), *ends[w - 1]);
  return ends;
}

}  // namespace

std::vector<Seconds> play(const KernelGraph& graph, const std::vector<Seconds>& lags) {
  std::vector<Seconds> times(graph.points);
  for (std::size_t point = 0; point < graph.points; ++point)
    for (std::uint32_t e = graph.first[point]; e < graph.first[point + 1]; ++e)
      times[point] = std::max(times[point], times[graph.edges[e].from] + lags[e]);
  return times;
}

StepWindows step_windows(const KernelGraph& graph, const std::vector<Seconds>& times) {
  StepWindows windows;
  std::vector<Seconds> last(graph.steps.size() + 1);
  bool first = true, before = false;
  for (std::size_t rank = 0; rank < graph.starts.size(); ++rank) {
    const bool own = std::find(graph.windows[rank].begin(), graph.windows[rank].end(), -1) !=
                     graph.windows[rank].end();
    const auto ends = ends_of(graph, times, rank);
    std::vector<Seconds>& steps = windows.ranks.emplace_back();
    for (std::size_t w = 1; w < ends.size(); ++w) {
      steps.push_back(*ends[w] - *ends[w - 1]);
      last[w] = std::max(last[w], *ends[w]);
    }
    // If all ranks begin with the step: the earliest start.
    if (own)
      last[0] = before ? std::max(last[0], *ends[0]) : *ends[0];
    else if (!before)
      last[0] = first ? *ends[0] : std::min(last[0], *ends[0]);
    before |= own;
    first = false;
  }
  windows.begin = last[0];
  for (std::size_t w = 1; w < last.size(); ++w)
    windows.all.push_back(std::max(Seconds{}, last[w] - last[w - 1]));
  return windows;
}

std::vector<RankTimes> played_times(const KernelGraph& graph, const RankSet& ranks,
                                    const std::vector<Seconds>& times) {
  const auto whole = [](Seconds time) { return Nanoseconds(std::llround(time.count() * 1e9)); };
  std::vector<RankTimes> result;
  for (std::size_t rank = 0; rank < ranks.traces.size(); ++rank) {
    DeviceTrace played;
    played.steps = ranks.traces[rank].steps;
    for (std::size_t i = 0; i < graph.starts[rank].size(); ++i) {
      if (graph.windows[rank][i] < 0) continue;
      DeviceEvent& event = played.events.emplace_back(ranks.traces[rank].events[i]);
      event.start = whole(times[graph.starts[rank][i]]);
      event.duration = whole(times[graph.ends[rank][i]]) - event.start;
    }
    std::stable_sort(played.events.begin(), played.events.end(),
                     [](const DeviceEvent& a, const DeviceEvent& b) { return a.start < b.start; });
    result.push_back(rank_times(played));
  }
  return result;
}

std::vector<KernelPathPiece> longest_path(const KernelGraph& graph, const RankSet& ranks,
                                          const std::vector<Seconds>& lags,
                                          const std::vector<Seconds>& times) {
  const Seconds begin = step_windows(graph, times).begin;
  std::uint32_t point = 0;
  for (const std::vector<std::uint32_t>& ends : graph.ends)
    for (const std::uint32_t end : ends)
      if (times[end] > times[point]) point = end;
  std::vector<KernelPathPiece> path;
  while (times[point] > begin && graph.first[point] < graph.first[point + 1]) {
    std::uint32_t binding = graph.first[point];
    const auto reached = [&](std::uint32_t e) { return times[graph.edges[e].from] + lags[e]; };
    for (std::uint32_t e = binding + 1; e < graph.first[point + 1]; ++e)
      if (reached(e) > reached(binding)) binding = e;
    const GraphEdge& edge = graph.edges[binding];
    if (times[point] > times[edge.from])
      path.push_back(
          {label(edge, ranks), edge.rank, std::max(begin, times[edge.from]), times[point]});
    point = edge.from;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

Mixture mixture(const KernelGraph& graph, const RankSet& ranks, const ChangedLags& lags) {
  Mixture result;
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    const GraphEdge& edge = graph.edges[e];
    if (edge.kind != EdgeKind::kernel && edge.kind != EdgeKind::transfer) continue;
    if (graph.windows[edge.rank][edge.event] < 0) continue;
    result[label(edge, ranks)][static_cast<std::size_t>(lags.origins[e])] += lags.lags[e];
  }
  return result;
}

}  // namespace polyphony::traces
