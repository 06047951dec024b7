#include "traces/kernels/kernel_graph.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "shared/error.h"
#include "traces/kernels/graph_builder.h"

namespace polyphony::traces {

GraphBuilder::GraphBuilder(const RankSet& ranks) : ranks_(ranks) {
  const std::size_t count = ranks.traces.size();
  graph_.starts.resize(count);
  graph_.ends.resize(count);
  lines_.resize(count);
  waited_.resize(count);
}

std::uint32_t GraphBuilder::add_point(std::uint32_t rank, Nanoseconds at) {
  at_.push_back(at);
  graph_.point_rank.push_back(rank);
  return static_cast<std::uint32_t>(at_.size() - 1);
}

bool GraphBuilder::add_edge(const GraphEdge& edge, Nanoseconds least) {
  if (at_[edge.from] + least > at_[edge.to]) return false;
  raw_.push_back({edge, least});
  return true;
}

void GraphBuilder::add_events(std::uint32_t rank) {
  const std::vector<DeviceEvent>& events = trace(rank).events;
  Lines& lines = lines_[rank];
  std::optional<Nanoseconds> soonest;
  for (std::uint32_t i = 0; i < events.size(); ++i) {
    const DeviceEvent& event = events[i];
    graph_.starts[rank].push_back(add_point(rank, at(rank, event.start)));
    graph_.ends[rank].push_back(add_point(rank, at(rank, event.end())));
    lines.streams[event.stream].push_back(i);
    if (!has_launch(event)) continue;
    lines.launched.push_back(i);
    lines.ended.push_back(event.end());
    soonest =
        std::min(soonest.value_or(event.start - event.launched), event.start - event.launched);
  }
  lines.soonest = soonest.value_or(Nanoseconds{});
  std::stable_sort(
      lines.launched.begin(), lines.launched.end(),
      [&](std::uint32_t a, std::uint32_t b) { return events[a].launched < events[b].launched; });
  std::sort(lines.ended.begin(), lines.ended.end());
  waited_[rank].assign(events.size(), false);
  for (std::uint32_t i = 0; i < events.size(); ++i)
    if (events[i].kind != KernelClass::collective)
      add_edge({graph_.starts[rank][i], graph_.ends[rank][i], EdgeKind::kernel, rank, i});
}

void GraphBuilder::follow_streams(std::uint32_t rank) {
  const std::vector<DeviceEvent>& events = trace(rank).events;
  for (const auto& [number, stream] : lines_[rank].streams) {
    for (std::size_t p = 0; p < stream.size(); ++p) {
      const std::uint32_t index = stream[p];
      const DeviceEvent& event = events[index];
      Nanoseconds known =
          has_launch(event) ? event.launched + lines_[rank].soonest : Nanoseconds::min();
      const DeviceEvent* before = p == 0 ? nullptr : &events[stream[p - 1]];
      if (before != nullptr && add_edge({graph_.ends[rank][stream[p - 1]],
                                         graph_.starts[rank][index], EdgeKind::stream, rank}))
        known = std::max(known, before->end());
      follow_others(rank, index, known,
                    event.kind == KernelClass::optimizer &&
                        (before == nullptr || before->kind != KernelClass::optimizer));
    }
  }
}

// Returns the last event of the stream that has ended by `time`.
std::optional<std::uint32_t> GraphBuilder::ended_before(std::uint32_t rank,
                                                        const std::vector<std::uint32_t>& stream,
                                                        Nanoseconds time) const {
  const std::vector<DeviceEvent>& events = trace(rank).events;
  auto after =
      std::upper_bound(stream.begin(), stream.end(), time,
                       [&](Nanoseconds t, std::uint32_t i) { return t < events[i].start; });
  while (after != stream.begin() && events[*(after - 1)].end() > time) --after;
  if (after == stream.begin()) return {};
  return *(after - 1);
}

std::optional<std::uint32_t> GraphBuilder::last_launched(std::uint32_t rank,
                                                         const std::vector<std::uint32_t>& stream,
                                                         Nanoseconds before) const {
  const std::vector<DeviceEvent>& events = trace(rank).events;
  const auto after =
      std::lower_bound(stream.begin(), stream.end(), before,
                       [&](std::uint32_t i, Nanoseconds t) { return events[i].launched < t; });
  if (after == stream.begin()) return {};
  return *(after - 1);
}

// Adds an edge to the first event launched on the waiting stream after the wait, from the last
// event launched on the other stream before the recorded event.
void GraphBuilder::take_recorded_waits(std::uint32_t rank) {
  const std::vector<DeviceEvent>& events = trace(rank).events;
  Lines& lines = lines_[rank];
  for (const StreamWait& wait : trace(rank).stream_waits) {
    const auto stream = lines.streams.find(wait.stream), on = lines.streams.find(wait.on);
    if (stream == lines.streams.end() || on == lines.streams.end()) continue;
    const auto next =
        std::lower_bound(stream->second.begin(), stream->second.end(), wait.asked,
                         [&](std::uint32_t i, Nanoseconds t) { return events[i].launched < t; });
    const auto last = last_launched(rank, on->second, wait.recorded);
    if (next != stream->second.end() && last && *last != *next) lines.waits[*next].push_back(*last);
  }
}

void GraphBuilder::follow_others(std::uint32_t rank, std::uint32_t index, Nanoseconds known,
                                 bool first_update) {
  const std::vector<DeviceEvent>& events = trace(rank).events;
  const DeviceEvent& event = events[index];
  const auto wait_for = [&](std::uint32_t other) {
    if (!add_edge(
            {graph_.ends[rank][other], graph_.starts[rank][index], EdgeKind::other_stream, rank}))
      return;
    known = std::max(known, events[other].end());
    waited_[rank][other] = true;
  };
  if (!trace(rank).stream_waits.empty()) {  // waits were recorded and need not be inferred
    if (const auto found = lines_[rank].waits.find(index); found != lines_[rank].waits.end())
      for (const std::uint32_t other : found->second) wait_for(other);
    return;
  }
  if (event.kind == KernelClass::collective && has_launch(event)) {
    const std::vector<std::uint32_t>& launched = lines_[rank].launched;
    auto before =
        std::lower_bound(launched.begin(), launched.end(), event.launched,
                         [&](std::uint32_t i, Nanoseconds t) { return events[i].launched < t; });
    while (before != launched.begin()) {
      const DeviceEvent& other = events[*--before];
      if (work_of(other.kind) != DeviceWork::compute) continue;
      if (other.stream != event.stream) wait_for(*before);
      break;
    }
  }
  if (first_update && has_launch(event))
    for (const auto& [number, stream] : lines_[rank].streams) {
      const auto last = last_launched(rank, stream, event.launched);
      if (number != event.stream && last && events[*last].kind == KernelClass::collective)
        wait_for(*last);
    }
  if (known != Nanoseconds::min() && event.start - known <= kExplained) return;
  std::optional<std::uint32_t> latest;
  for (const auto& [number, stream] : lines_[rank].streams) {
    if (number == event.stream) continue;
    const auto other = ended_before(rank, stream, event.start);
    if (!other || *other >= index || events[*other].end() <= known) continue;
    if (has_launch(event) && events[*other].launched >= event.launched) continue;
    if (!latest || events[*other].end() > events[*latest].end()) latest = other;
  }
  if (latest && event.start - events[*latest].end() <= kExplained) wait_for(*latest);
}

void GraphBuilder::split_steps() {
  std::optional<std::set<std::int64_t>> common;
  bool told = true;
  for (const DeviceTrace& trace : ranks_.traces) {
    std::set<std::int64_t> own;
    for (const DeviceEvent& event : trace.events)
      if (event.step >= 0 &&
          (!common || common->count(trace.steps[static_cast<std::size_t>(event.step)].number)))
        own.insert(trace.steps[static_cast<std::size_t>(event.step)].number);
    told = told && !own.empty();
    common = std::move(own);
  }
  graph_.steps = told ? std::vector<std::int64_t>(common->begin(), common->end())
                      : std::vector<std::int64_t>{0};
  for (const DeviceTrace& trace : ranks_.traces) {
    std::vector<std::int32_t>& windows = graph_.windows.emplace_back();
    for (const DeviceEvent& event : trace.events) {
      const auto after = std::upper_bound(
          trace.steps.begin(), trace.steps.end(), event.launched,
          [](Nanoseconds time, const StepRange& step) { return time < step.start; });
      const auto begun = [&]() -> std::int32_t {
        if (!told) return 0;
        if (after == trace.steps.begin()) return -1;
        const auto past =
            std::upper_bound(graph_.steps.begin(), graph_.steps.end(), (after - 1)->number);
        return static_cast<std::int32_t>(past - graph_.steps.begin()) - 1;
      };
      windows.push_back(begun());
    }
  }
}

RecordedGraph GraphBuilder::build() {
  add_point(kNone, Nanoseconds::max());  // the start of the record
  const auto count = static_cast<std::uint32_t>(ranks_.traces.size());
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    add_events(rank);
    take_recorded_waits(rank);
    follow_streams(rank);
    follow_host(rank);
  }
  meet();
  split_steps();
  note_unseen();
  return finish();
}

// Numbers the points in topological order. Time that no edge explains is added to all edges of a
// point.
RecordedGraph GraphBuilder::finish() {
  at_[0] = *std::min_element(at_.begin(), at_.end());
  const std::size_t count = at_.size();
  std::vector<std::uint32_t> incoming(count, 0);
  for (const Raw& raw : raw_) ++incoming[raw.edge.to];
  for (std::uint32_t point = 1; point < count; ++point)
    if (incoming[point] == 0) {
      raw_.push_back({{0, point, EdgeKind::begin, graph_.point_rank[point]}, {}});
      incoming[point] = 1;
    }
  std::vector<std::uint32_t> outgoing(count + 1, 0);
  for (const Raw& raw : raw_) ++outgoing[raw.edge.from + 1];
  std::partial_sum(outgoing.begin(), outgoing.end(), outgoing.begin());
  std::vector<std::uint32_t> by_from(raw_.size());
  std::vector<std::uint32_t> next(outgoing.begin(), outgoing.end() - 1);
  for (std::uint32_t e = 0; e < raw_.size(); ++e) by_from[next[raw_[e].edge.from]++] = e;
  std::vector<std::uint32_t> order{0}, place(count, kNone), left = incoming;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t point = order[i];
    place[point] = static_cast<std::uint32_t>(i);
    for (std::uint32_t e = outgoing[point]; e < outgoing[point + 1]; ++e)
      if (--left[raw_[by_from[e]].edge.to] == 0) order.push_back(raw_[by_from[e]].edge.to);
  }
  if (order.size() != count)
    throw InputError(ranks_.traces.front().file, "/traceEvents",
                     "the waits of events without length form a cycle",
                     "export the trace again with times in nanoseconds");

  RecordedGraph result;
  KernelGraph& graph = result.graph = std::move(graph_);
  graph.points = count;
  std::vector<std::uint32_t> point_rank(count);
  result.times.resize(count);
  for (std::size_t point = 0; point < count; ++point) {
    point_rank[place[point]] = graph.point_rank[point];
    result.times[place[point]] = at_[point] - at_[0];
  }
  graph.point_rank = std::move(point_rank);
  for (auto* of_rank : {&graph.starts, &graph.ends})
    for (std::vector<std::uint32_t>& points : *of_rank)
      for (std::uint32_t& point : points) point = place[point];
  std::vector<Nanoseconds> ready(count, Nanoseconds::min());
  for (const Raw& raw : raw_)
    ready[raw.edge.to] = std::max(ready[raw.edge.to], at_[raw.edge.from] + raw.least);
  std::stable_sort(raw_.begin(), raw_.end(),
                   [&](const Raw& a, const Raw& b) { return place[a.edge.to] < place[b.edge.to]; });
  graph.first.assign(count + 1, 0);
  for (const Raw& raw : raw_) {
    GraphEdge edge = raw.edge;
    result.lags.push_back(raw.least + at_[edge.to] - ready[edge.to]);
    edge.from = place[edge.from];
    edge.to = place[edge.to];
    ++graph.first[edge.to + 1];
    graph.edges.push_back(edge);
  }
  std::partial_sum(graph.first.begin(), graph.first.end(), graph.first.begin());
  return result;
}

RecordedGraph recorded_graph(const RankSet& ranks) { return GraphBuilder(ranks).build(); }

}  // namespace polyphony::traces
