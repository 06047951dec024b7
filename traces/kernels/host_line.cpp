// Edges between the calls of a host, and from the device to the calls that wait for it.
#include <algorithm>

#include "traces/kernels/graph_builder.h"

namespace polyphony::traces {

// Returns the events for which a call waited: those launched before it that ended during it.
std::vector<std::uint32_t> GraphBuilder::waited_for(std::uint32_t rank,
                                                    const HostWait& wait) const {
  const std::vector<DeviceEvent>& events = trace(rank).events;
  const Lines& lines = lines_[rank];
  std::vector<std::uint32_t> found;
  const auto launched_till = [&](Nanoseconds time) {
    return std::upper_bound(lines.launched.begin(), lines.launched.end(), time,
                            [&](Nanoseconds t, std::uint32_t i) { return t < events[i].launched; });
  };
  if (wait.what == WaitsFor::copy) {
    // The copy that this call launched.
    for (auto own = launched_till(wait.start);
         own != lines.launched.begin() && events[*(own - 1)].launched == wait.start; --own)
      if (work_of(events[*(own - 1)].kind) == DeviceWork::memory &&
          events[*(own - 1)].end() <= wait.end())
        found.push_back(*(own - 1));
    return found;
  }
  const auto take_last_of = [&](const std::vector<std::uint32_t>& stream) {
    const auto last = last_launched(rank, stream, wait.start);
    if (last && events[*last].end() <= wait.end()) found.push_back(*last);
  };
  if (wait.what == WaitsFor::device)
    for (const auto& [number, stream] : lines.streams) take_last_of(stream);
  const auto before = launched_till(wait.start);
  if (wait.what == WaitsFor::queue) {
    const auto done = std::upper_bound(lines.ended.begin(), lines.ended.end(), wait.start);
    if ((before - lines.launched.begin()) - (done - lines.ended.begin()) < kQueued) return found;
  }
  if (wait.what == WaitsFor::stream && before != lines.launched.begin())
    take_last_of(lines.streams.at(events[*(before - 1)].stream));  // the current stream
  if (!found.empty()) return found;
  // An event, or another stream: the event that ended last before the call returned.
  std::optional<std::uint32_t> latest;
  for (const auto& [number, stream] : lines.streams) {
    const auto other = ended_before(rank, stream, wait.end());
    if (!other || events[*other].end() <= wait.start || events[*other].launched >= wait.start)
      continue;
    if (!latest || events[*other].end() > events[*latest].end()) latest = other;
  }
  if (latest && wait.end() - events[*latest].end() <= kExplained) found.push_back(*latest);
  return found;
}

void GraphBuilder::add_return(std::uint32_t rank, const HostWait& wait,
                              std::vector<HostPoint>& line) {
  const std::vector<std::uint32_t> events = waited_for(rank, wait);
  // The call returned immediately, or took long for other reasons.
  if (events.empty() && (wait.what == WaitsFor::copy || wait.what == WaitsFor::queue)) return;
  const std::uint32_t back = add_point(rank, at(rank, wait.end()));
  const auto after =
      std::upper_bound(line.begin(), line.end(), wait.start,
                       [](Nanoseconds time, const HostPoint& one) { return time < one.at; });
  if (after != line.begin())
    add_edge({(after - 1)->point, back, EdgeKind::host, rank}, wait.start - (after - 1)->at);
  for (const std::uint32_t event : events) {
    add_edge({graph_.ends[rank][event], back, EdgeKind::host, rank});
    waited_[rank][event] = true;
  }
  line.push_back({wait.end(), back});
}

void GraphBuilder::follow_host(std::uint32_t rank) {
  const std::vector<DeviceEvent>& events = trace(rank).events;
  std::vector<HostWait> waits = trace(rank).waits;
  std::stable_sort(waits.begin(), waits.end(),
                   [](const HostWait& a, const HostWait& b) { return a.end() < b.end(); });
  std::vector<HostPoint> line;  // in order of time
  auto wait = waits.begin();
  const auto returns_till = [&](Nanoseconds time) {
    for (; wait != waits.end() && wait->end() <= time; ++wait) add_return(rank, *wait, line);
  };
  Nanoseconds latest = Nanoseconds::min();
  std::uint32_t launch = kNone;
  for (const std::uint32_t index : lines_[rank].launched) {
    const DeviceEvent& event = events[index];
    if (launch == kNone ||
        event.launched != latest) {  // a CUDA graph launch is one launch of many kernels
      latest = event.launched;
      returns_till(latest);
      launch = add_point(rank, at(rank, latest));
      if (!line.empty()) add_edge({line.back().point, launch, EdgeKind::host, rank});
      line.push_back({latest, launch});
    }
    add_edge({launch, graph_.starts[rank][index], EdgeKind::launch, rank, index},
             lines_[rank].soonest);
  }
  returns_till(Nanoseconds::max());
}

}  // namespace polyphony::traces
