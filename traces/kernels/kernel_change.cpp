#include "traces/kernels/kernel_change.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "shared/cost/collectives.h"
#include "shared/error.h"
#include "traces/kineto/summary.h"

namespace polyphony::traces {
namespace {

std::string listed(const std::set<std::string>& all) {
  std::string text;
  for (const std::string& one : all) text += (text.empty() ? "" : ", ") + one;
  return text.empty() ? "none" : text;
}

Seconds model_time(CollectiveKind kind, int ranks, Bytes bytes, BytesPerSecond rate) {
  Ring ring;
  ring.ranks = ranks;
  ring.rate = ring.exchange = rate;
  ring.library = CollectiveLibrary::nccl;
  return ring_time(ring, kind, bytes);
}

// Returns the rate at which the model's time equals the measured time. The time decreases with the
// rate; if it is below the time of zero bytes, the largest rate is returned.
BytesPerSecond rate_of(CollectiveKind kind, int ranks, Bytes bytes, Seconds time) {
  double low = 1e3, high = 1e16;
  for (int i = 0; i < 100 && high / low > 1 + 1e-12; ++i) {
    const double middle = std::sqrt(low * high);
    (model_time(kind, ranks, bytes, BytesPerSecond(middle)) > time ? low : high) = middle;
  }
  return BytesPerSecond(high);
}

class Changer {
 public:
  Changer(const RecordedGraph& recorded, const RankSet& ranks, const KernelChange& change)
      : graph_(recorded.graph), ranks_(ranks), change_(change) {
    result_.lags = recorded.lags;
    result_.origins.assign(recorded.lags.size(), Origin::measured);
    launches_.assign(graph_.points, 0);
    for (const GraphEdge& edge : graph_.edges)
      if (edge.kind == EdgeKind::launch) ++launches_[edge.from];
  }

  ChangedLags run() {
    check();
    for (const std::string& what : change_.fused) fuse(what);
    for (std::size_t e = 0; e < graph_.edges.size(); ++e) {
      const double times = factor(graph_.edges[e], result_.lags[e]);
      if (times == 1) continue;
      result_.lags[e] *= times;
      result_.origins[e] = Origin::scaled;
    }
    return std::move(result_);
  }

 private:
  const DeviceEvent& event(const GraphEdge& edge) const {
    return ranks_.traces[edge.rank].events[edge.event];
  }
  const CollectiveShape& shape(const GraphEdge& edge) const {
    return ranks_.traces[edge.rank].collectives[event(edge).detail];
  }

  void check() const;
  void fuse(const std::string& what);
  void drop(std::uint32_t start);
  double factor(const GraphEdge& edge, Seconds time) const;
  double transfer_factor(const GraphEdge& edge, Seconds time) const;
  double link_of(const Meeting& meeting) const;

  const KernelGraph& graph_;
  const RankSet& ranks_;
  const KernelChange& change_;
  std::vector<std::uint32_t> launches_;  // by point: number of kernels that it launches
  ChangedLags result_;
};

bool is_among(const GraphEdge& edge, const RankSet& ranks, const std::string& what) {
  if (is_of(label(edge, ranks), what)) return true;
  return edge.kind == EdgeKind::kernel &&
         what == name(work_of(ranks.traces[edge.rank].events[edge.event].kind));
}

void Changer::check() const {
  std::set<std::string> labels, groups;
  for (const GraphEdge& edge : graph_.edges)
    if (edge.kind != EdgeKind::members && edge.kind != EdgeKind::begin)
      labels.insert(label(edge, ranks_));
  const auto require = [&](const std::string& argument, const std::string& what, bool kernels) {
    for (const GraphEdge& edge : graph_.edges)
      if (is_among(edge, ranks_, what) && (!kernels || edge.kind == EdgeKind::kernel)) return;
    throw InputError(Argument{argument}, "",
                     "no activity of these traces has the class \"" + what + "\"",
                     "the classes are compute, memory; " + listed(labels));
  };
  for (const Speedup& speedup : change_.faster) require("faster", speedup.what, false);
  for (const std::string& what : change_.fused) require("fuse", what, true);
  std::set<std::string> unsized;
  bool sized = false;
  for (const DeviceTrace& trace : ranks_.traces)
    for (const CollectiveShape& one : trace.collectives) {
      groups.insert(group_name(one));
      sized |= one.bytes.has_value();
      if (one.ranks == 0) unsized.insert(group_name(one));
    }
  for (const GroupSize& group : change_.groups) {
    if (groups.count(group.group) == 0)
      throw InputError("--group", "", "no collective has a group named \"" + group.group + "\"",
                       "the groups are " + listed(groups));
    if (unsized.count(group.group) > 0)
      throw InputError("--group", "", "the size of group " + group.group + " was not recorded",
                       "record with PyTorch 2.2 or later");
  }
  if (change_.links != 1 && !sized)
    throw InputError("--links", "", "no collective's size was recorded in these traces",
                     "record with PyTorch 2.2 or later, or with record_shapes=True");
  for (const Degraded& slow : change_.degraded) {
    std::set<std::string> recorded;
    bool there = false;
    for (const DeviceTrace& trace : ranks_.traces) {
      recorded.insert(std::to_string(trace.rank.value_or(0)));
      there |= trace.rank.value_or(0) == slow.rank;
    }
    if (!there)
      throw InputError("--set cluster.degraded", "",
                       "rank " + std::to_string(slow.rank) + " was not recorded",
                       "ranks with a trace: " + listed(recorded));
  }
}

void Changer::fuse(const std::string& what) {
  for (std::uint32_t rank = 0; rank < ranks_.traces.size(); ++rank) {
    const std::vector<DeviceEvent>& events = ranks_.traces[rank].events;
    const auto own = [&](std::uint32_t i) {
      return graph_.first[graph_.ends[rank][i]];  // the end of a kernel depends on its start only
    };
    std::map<std::int32_t, std::uint32_t> last;  // by stream: first event of the current run
    for (std::uint32_t i = 0; i < events.size(); ++i) {
      if (events[i].kind == KernelClass::collective ||
          !is_among(graph_.edges[own(i)], ranks_, what)) {
        last.erase(events[i].stream);
        continue;
      }
      const auto [run, first] = last.try_emplace(events[i].stream, i);
      if (first) continue;
      Seconds& kept = result_.lags[own(run->second)];
      Seconds& gone = result_.lags[own(i)];
      kept = std::max(kept, gone);
      gone = Seconds{};
      result_.origins[own(i)] = Origin::scaled;
      drop(graph_.starts[rank][i]);
    }
  }
}

// The event is neither launched nor started. The time that the host spent on it is removed if the
// launch was for this event only.
void Changer::drop(std::uint32_t start) {
  for (std::uint32_t e = graph_.first[start]; e < graph_.first[start + 1]; ++e) {
    result_.lags[e] = Seconds{};
    const GraphEdge& edge = graph_.edges[e];
    if (edge.kind != EdgeKind::launch) continue;
    if (launches_[edge.from] > 1) continue;
    for (std::uint32_t h = graph_.first[edge.from]; h < graph_.first[edge.from + 1]; ++h)
      if (graph_.edges[h].kind == EdgeKind::host) result_.lags[h] = Seconds{};
  }
}

double Changer::link_of(const Meeting& meeting) const {
  double slowest = 1;
  for (const Degraded& slow : change_.degraded)
    for (const Meeting::Member& one : meeting.members)
      if (ranks_.traces[one.rank].rank.value_or(0) == slow.rank)
        slowest = std::min(slowest, slow.link);
  return change_.links * slowest;
}

double Changer::transfer_factor(const GraphEdge& edge, Seconds time) const {
  const CollectiveShape& of = shape(edge);
  const double links = link_of(graph_.meetings[edge.meeting]);
  int ranks = of.ranks;
  for (const GroupSize& group : change_.groups)
    if (group_name(of) == group.group) ranks = group.ranks;
  if (links == 1 && ranks == of.ranks) return 1;
  const auto kind = collective_kind(of.call);
  if (!kind || !of.bytes || of.ranks < 2 || time.count() <= 0) return 1 / links;
  const BytesPerSecond rate = rate_of(*kind, of.ranks, *of.bytes, time);
  return model_time(*kind, ranks, *of.bytes, rate * links) /
         model_time(*kind, of.ranks, *of.bytes, rate);
}

double Changer::factor(const GraphEdge& edge, Seconds time) const {
  if (edge.kind == EdgeKind::members || edge.kind == EdgeKind::begin ||
      edge.kind == EdgeKind::absent)
    return 1;
  double factor = edge.kind == EdgeKind::transfer ? transfer_factor(edge, time) : 1;
  for (const Speedup& speedup : change_.faster)
    if (is_among(edge, ranks_, speedup.what)) factor /= speedup.factor;
  if (edge.kind != EdgeKind::kernel) return factor;
  const KernelClass kind = event(edge).kind;
  const bool own = kind != KernelClass::to_device && kind != KernelClass::to_host;
  for (const Degraded& slow : change_.degraded)
    if (own && ranks_.traces[edge.rank].rank.value_or(0) == slow.rank) factor /= slow.device;
  return factor;
}

}  // namespace

std::string group_name(const CollectiveShape& shape) {
  const std::size_t members = shape.group.find('[');
  std::string text = shape.group.substr(0, members);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

std::string label(const GraphEdge& edge, const RankSet& ranks) {
  const DeviceTrace& trace = ranks.traces[edge.rank];
  switch (edge.kind) {
    case EdgeKind::kernel:
      return name(trace.events[edge.event].kind);
    case EdgeKind::transfer: {
      const CollectiveShape& shape = trace.collectives[trace.events[edge.event].detail];
      const std::string group = group_name(shape);
      return std::string("collective ") + name(shape.call) + (group.empty() ? "" : " " + group);
    }
    case EdgeKind::absent:
      return "absent ranks";
    case EdgeKind::members:
      return "members";
    case EdgeKind::stream:
    case EdgeKind::other_stream:
      return "gaps";
    case EdgeKind::launch:
      return "launch";
    case EdgeKind::host:
      return "host";
    case EdgeKind::begin:
      return "start";
  }
  return "?";
}

ChangedLags changed_lags(const RecordedGraph& recorded, const RankSet& ranks,
                         const KernelChange& change) {
  return Changer(recorded, ranks, change).run();
}

}  // namespace polyphony::traces
