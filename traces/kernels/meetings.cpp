// Matches collectives across the ranks that recorded them, and separates transfer time from
// waiting.
#include <algorithm>
#include <set>

#include "shared/text/figure_text.h"
#include "traces/kernels/graph_builder.h"

namespace polyphony::traces {
namespace {

// Both ends of a message have the same name; files do not state the other rank.
bool has_peers(CollectiveCall call) {
  return call != CollectiveCall::send_receive && call != CollectiveCall::other;
}

}  // namespace

const CollectiveShape& GraphBuilder::shape_of(const Meeting::Member& member) const {
  return trace(member.rank).collectives[trace(member.rank).events[member.event].detail];
}

void GraphBuilder::meet() {
  const auto count = static_cast<std::uint32_t>(ranks_.traces.size());
  using Kind = std::pair<std::int64_t, CollectiveShape>;                      // of a step
  std::map<Kind, std::map<std::uint32_t, std::vector<std::uint32_t>>> kinds;  // by rank: events
  std::vector<Meeting> alone;
  for (std::uint32_t rank = 0; rank < count; ++rank)
    for (std::uint32_t i = 0; i < trace(rank).events.size(); ++i) {
      const DeviceEvent& event = trace(rank).events[i];
      if (event.kind != KernelClass::collective) continue;
      const CollectiveShape& shape = shape_of({rank, i});
      if (!has_peers(shape.call)) {
        alone.push_back({{{rank, i}}, false});
        continue;
      }
      const std::int64_t step =
          event.step < 0 ? -1 : trace(rank).steps[static_cast<std::size_t>(event.step)].number;
      kinds[{step, shape}][rank].push_back(i);
    }
  std::vector<Meeting> meetings = std::move(alone);
  std::int64_t uneven = 0;
  for (const auto& [kind, by_rank] : kinds) {
    const CollectiveShape& shape = kind.second;
    const std::size_t each = by_rank.begin()->second.size();
    const bool even = std::all_of(by_rank.begin(), by_rank.end(),
                                  [&](const auto& of) { return of.second.size() == each; }) &&
                      (!shape.group.empty() || by_rank.size() == count);
    // If the group is unknown: all ranks of the job, if all recorded the same number.
    const int world = trace(0).world.value_or(0);
    const auto members = static_cast<std::size_t>(shape.ranks > 0 ? shape.ranks : world);
    if (!even) {
      for (const auto& [rank, events] : by_rank)
        for (const std::uint32_t event : events)
          meetings.push_back({{{rank, event}}, members == 1});
      uneven += by_rank.size() > 1 ? static_cast<std::int64_t>(each) : 0;
      continue;
    }
    for (std::size_t k = 0; k < each; ++k) {
      Meeting meeting;
      for (const auto& [rank, events] : by_rank) meeting.members.push_back({rank, events[k]});
      meeting.complete = meeting.members.size() == members;
      meetings.push_back(std::move(meeting));
    }
  }
  if (uneven > 0)
    graph_.notes.push_back(
        counted(uneven, "collective is", "collectives are") +
        " recorded a different number of times on the ranks of a step: simulated separately");
  // Some members ended before others had entered: the clocks differ too much, or a root does not
  // wait for other ranks.
  std::vector<Meeting> apart;
  std::int64_t early = 0;
  for (Meeting& meeting : meetings) {
    Nanoseconds come = Nanoseconds::min(), end = Nanoseconds::max();
    for (const Meeting::Member& one : meeting.members) {
      come = std::max(come, at_[graph_.starts[one.rank][one.event]]);
      end = std::min(end, at_[graph_.ends[one.rank][one.event]]);
    }
    if (meeting.members.size() < 2 || come < end) continue;
    ++early;
    for (std::size_t i = 1; i < meeting.members.size(); ++i)
      apart.push_back({{meeting.members[i]}, meeting.complete});
    meeting.members.resize(1);
  }
  if (early > 0)
    graph_.notes.push_back(counted(early, "collective ended", "collectives ended") +
                           " on one rank before another rank had entered: simulated separately");
  meetings.insert(meetings.end(), apart.begin(), apart.end());

  std::map<CollectiveShape, Nanoseconds> shortest;
  std::int64_t unknown = 0, absent = 0;
  const auto took = [&](const Meeting& meeting, const Meeting::Member& member) {
    Nanoseconds come = Nanoseconds::min();
    for (const Meeting::Member& one : meeting.members)
      come = std::max(come, at_[graph_.starts[one.rank][one.event]]);
    return at_[graph_.ends[member.rank][member.event]] - come;
  };
  for (const Meeting& meeting : meetings)
    for (const Meeting::Member& member : meeting.members) {
      const auto [found, added] = shortest.try_emplace(shape_of(member), took(meeting, member));
      if (!added) found->second = std::min(found->second, took(meeting, member));
      absent += meeting.complete ? 0 : 1;
      unknown += meeting.complete || shape_of(member).bytes ? 0 : 1;
    }
  for (auto& [shape, time] : shortest)
    if (!shape.bytes) time = Nanoseconds{};
  for (const Meeting& meeting : meetings) join(meeting, shortest);
  if (absent > 0)
    graph_.notes.push_back(counted(absent, "collective has", "collectives have") +
                           " members that were not recorded: the shortest of each size is used as "
                           "transfer time, additional time of the others is waiting and stays "
                           "constant");
  if (unknown > 0)
    graph_.notes.push_back("of " + count_text(unknown) +
                           " of them the size was not recorded: their whole time stays constant");
}

void GraphBuilder::join(const Meeting& meeting,
                        const std::map<CollectiveShape, Nanoseconds>& shortest) {
  const auto number = static_cast<std::uint32_t>(graph_.meetings.size());
  graph_.meetings.push_back(meeting);
  const auto start = [&](const Meeting::Member& one) { return graph_.starts[one.rank][one.event]; };
  std::uint32_t all = start(meeting.members.front());
  if (meeting.members.size() > 1) {
    Nanoseconds come = Nanoseconds::min();
    for (const Meeting::Member& one : meeting.members) come = std::max(come, at_[start(one)]);
    all = add_point(kNone, come);
    for (const Meeting::Member& one : meeting.members)
      add_edge({start(one), all, EdgeKind::members, one.rank, one.event, number});
  }
  for (const Meeting::Member& one : meeting.members) {
    const std::uint32_t end = graph_.ends[one.rank][one.event];
    const Nanoseconds waits =
        meeting.complete ? Nanoseconds{} : at_[end] - at_[all] - shortest.at(shape_of(one));
    std::uint32_t begun = all;
    if (waits.count() > 0) {
      begun = add_point(one.rank, at_[all] + waits);
      add_edge({all, begun, EdgeKind::absent, one.rank, one.event, number});
    }
    add_edge({begun, end, EdgeKind::transfer, one.rank, one.event, number});
  }
}

void GraphBuilder::note_unseen() {
  std::int64_t unseen = 0, all = 0;
  for (std::uint32_t rank = 0; rank < ranks_.traces.size(); ++rank)
    for (const auto& [number, stream] : lines_[rank].streams) {
      const std::vector<DeviceEvent>& events = trace(rank).events;
      const auto is_collective = [&](std::uint32_t i) {
        return events[i].kind == KernelClass::collective;
      };
      // Later events on the same stream wait for it in any case.
      bool computes_after = false;
      for (auto i = stream.rbegin(); i != stream.rend(); ++i) {
        if (!is_collective(*i)) {
          computes_after = true;
          continue;
        }
        ++all;
        unseen += waited_[rank][*i] || computes_after ? 0 : 1;
      }
    }
  if (unseen > 0)
    graph_.notes.push_back(
        "of " + counted(all, "collective", "collectives") + " " + count_text(unseen) +
        " ended before any recorded wait for them: if they become longer, the step may take "
        "longer than predicted");
}

}  // namespace polyphony::traces
