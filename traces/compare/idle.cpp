#include "traces/compare/idle.h"

#include <algorithm>
#include <optional>
#include <string>

#include "traces/compare/activity.h"

namespace polyphony::traces {
namespace {

std::size_t place(Idle idle) { return static_cast<std::size_t>(idle); }

// Message streams are named after the edge: "projector.1>language.0 send".
bool joins_grids(const Program& program, const std::string& stream) {
  const std::size_t middle = stream.find_first_of("<>");
  if (middle == std::string::npos) return false;
  const auto owner = [&](const std::string& stage) {
    const std::string module = stage.substr(0, stage.rfind('.'));
    for (std::size_t m = 0; m < program.model.modules.size(); ++m)
      if (program.model.modules[m].name == module) return grid_owner(program.model, ModuleId(m));
    return ModuleId();
  };
  return program.layout.placement != Placement::homogeneous &&
         owner(stream.substr(0, middle)) != owner(stream.substr(middle + 1));
}

// Cause of a gap that ended with an op of the stream. Collective streams have two kinds of ops.
struct StreamTimes {
  bool bridge = false;
  std::vector<Interval> sums, others;
};

// Returns nothing if the op counts as compute.
std::optional<Idle> kind_of(const std::vector<StreamTimes>& streams, const Op& op) {
  if (std::holds_alternative<Exchange>(op.what))
    return streams[op.stream.value].bridge ? Idle::bridge : Idle::messages;
  if (std::holds_alternative<HostCopy>(op.what)) return Idle::host;
  const auto* collective = std::get_if<Collective>(&op.what);
  if (collective == nullptr || !collective->params.valid()) return {};
  const bool sums = collective->kind == CollectiveKind::all_reduce;
  return sums ? Idle::gradients : Idle::shards;
}

// The intervals are sorted and disjoint.
Seconds length_within(const std::vector<Interval>& intervals, Interval gap) {
  Seconds length{};
  auto next =
      std::partition_point(intervals.begin(), intervals.end(),
                           [&](const Interval& interval) { return interval.end <= gap.start; });
  for (; next != intervals.end() && next->start < gap.end; ++next)
    length += std::min(next->end, gap.end) - std::max(next->start, gap.start);
  return length;
}

struct Piece {
  Interval when;
  OpId op;
};
struct RankTimes {
  std::vector<Piece> computing;
  OpId last;  // the last op to end that is not compute
};

class Attribution {
 public:
  Attribution(const Program& program, const Timeline& timeline)
      : program_(program),
        makespan_(timeline.makespan),
        times_(recorded(program, timeline)),
        ranks_(program.ranks),
        streams_(program.streams.size()) {
    for (std::size_t s = 0; s < streams_.size(); ++s)
      streams_[s].bridge = joins_grids(program, program.streams[s].name);
    const Activity activity = find_activity(program, timeline);
    for (std::size_t id = 0; id < program.ops.size(); ++id) {
      const Op& op = program.ops[id];
      RankTimes& rank = ranks_[program.rank_of(op).value];
      StreamTimes& stream = streams_[op.stream.value];
      const std::optional<Idle> kind = kind_of(streams_, op);
      for (auto i = activity.of[id].begin; i < activity.of[id].end; ++i) {
        const Interval& when = activity.intervals[i];
        if (kind)
          (*kind == Idle::gradients ? stream.sums : stream.others).push_back(when);
        else
          rank.computing.push_back({when, OpId(id)});
      }
      if (!kind || !times_[id]) continue;
      if (!rank.last.valid() || times_[id]->end > times_[rank.last.value]->end)
        rank.last = OpId(id);
    }
  }

  std::vector<IdleTimes> run() {
    std::vector<IdleTimes> result;
    std::vector<Seconds> busy;
    for (StreamTimes& stream : streams_) {
      stream.sums = joined(std::move(stream.sums));
      stream.others = joined(std::move(stream.others));
    }
    for (RankTimes& rank : ranks_) {
      IdleTimes times{};
      busy.push_back(makespan_ - spread_gaps(rank, times));
      result.push_back(times);
    }
    const Seconds most = *std::max_element(busy.begin(), busy.end());
    for (std::size_t r = 0; r < result.size(); ++r) {
      Seconds& waiting = result[r][place(Idle::bubble)];
      const Seconds less = std::min(waiting, most - busy[r]);
      result[r][place(Idle::imbalance)] = less;
      waiting -= less;
    }
    return result;
  }

 private:
  // Adds the idle time; waiting is added to `bubble`.
  Seconds spread_gaps(RankTimes& rank, IdleTimes& times) const {
    std::sort(rank.computing.begin(), rank.computing.end(),
              [](const Piece& a, const Piece& b) { return a.when < b.when; });
    Seconds idle{}, free{};
    const auto close = [&](Seconds end, OpId ended_by) {
      if (end <= free) return;
      idle += end - free;
      spread_gap({free, end}, ended_by, times);
    };
    for (const Piece& piece : rank.computing) {
      close(piece.when.start, last_wait(piece.op));
      free = std::max(free, piece.when.end);
    }
    close(makespan_, rank.last);
    return idle;
  }

  OpId last_wait(OpId op) const {
    OpId last;
    const Range waits = program_.ops[op.value].waits_for;
    for (auto w = waits.begin; w < waits.end; ++w) {
      const OpId wait = program_.waits[w];
      if (!times_[wait.value]) continue;
      if (!last.valid() || times_[wait.value]->end > times_[last.value]->end) last = wait;
    }
    return last;
  }

  void spread_gap(Interval gap, OpId ended_by, IdleTimes& times) const {
    Seconds left = gap.end - gap.start;
    const auto expose = [&](Idle kind, const std::vector<Interval>& under_way) {
      const Seconds length = std::min(left, length_within(under_way, gap));
      times[place(kind)] += length;
      left -= length;
    };
    if (ended_by.valid()) {
      const Op& op = program_.ops[ended_by.value];
      const StreamTimes& stream = streams_[op.stream.value];
      if (const auto kind = kind_of(streams_, op)) {
        // The op that ended late may have queued behind collectives of the other kind.
        expose(*kind == Idle::gradients ? Idle::shards : *kind, stream.others);
        expose(Idle::gradients, stream.sums);
      }
    }
    times[place(Idle::bubble)] += left;
  }

  const Program& program_;
  const Seconds makespan_;
  std::vector<std::optional<Interval>> times_;
  std::vector<RankTimes> ranks_;
  std::vector<StreamTimes> streams_;
};

}  // namespace

std::vector<IdleTimes> idle_times(const Program& program, const Timeline& timeline) {
  return Attribution(program, timeline).run();
}

IdleTimes mean(const std::vector<IdleTimes>& ranks) {
  IdleTimes sum{};
  for (const IdleTimes& rank : ranks)
    for (std::size_t i = 0; i < kIdles; ++i) sum[i] += rank[i] / static_cast<double>(ranks.size());
  return sum;
}

}  // namespace polyphony::traces
