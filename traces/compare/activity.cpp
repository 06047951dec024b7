#include "traces/compare/activity.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace polyphony::traces {
namespace {

struct Ends {
  std::optional<OpId> send, receive;
};

class Finder {
 public:
  Finder(const Program& program, const Timeline& timeline)
      : program_(program), times_(recorded(program, timeline)), started_(program.ops.size()) {}

  Activity find() {
    find_starts();
    find_set_starts();
    find_message_ends();
    Activity activity;
    activity.of.resize(program_.ops.size());
    for (std::size_t op = 0; op < program_.ops.size(); ++op) {
      const auto begin = static_cast<std::uint32_t>(activity.intervals.size());
      if (times_[op]) append(op, activity.intervals);
      activity.of[op] = {begin, static_cast<std::uint32_t>(activity.intervals.size())};
    }
    return activity;
  }

 private:
  // An op counts from when it could start. The time between the end of its last dependency and its
  // recorded start is waking up and dispatch, which is part of its cost. An op without dependencies
  // starts at its recorded start.
  void find_starts() {
    std::vector<std::optional<Seconds>> stream_free(program_.streams.size());
    for (std::size_t op = 0; op < program_.ops.size(); ++op) {
      if (!times_[op]) continue;
      const Op& what = program_.ops[op];
      std::optional<Seconds> ready = stream_free[what.stream.value];
      for (auto w = what.waits_for.begin; w < what.waits_for.end; ++w) {
        const auto& wait = times_[program_.waits[w].value];
        if (wait) ready = std::max(ready, std::optional(wait->end));
      }
      started_[op] = ready.value_or(times_[op]->start);
      stream_free[what.stream.value] = times_[op]->end;
    }
  }

  void find_set_starts() {
    sets_ = rendezvous_sets(program_);
    set_started_.assign(program_.ops.size(), Seconds(-1e300));
    for (std::size_t op = 0; op < program_.ops.size(); ++op) {
      if (times_[op]) set_started_[sets_[op]] = std::max(set_started_[sets_[op]], started_[op]);
    }
  }

  void find_message_ends() {
    ends_.resize(program_.messages.size());
    for (std::size_t op = 0; op < program_.ops.size(); ++op) {
      const auto* exchange = std::get_if<Exchange>(&program_.ops[op].what);
      if (exchange == nullptr || !times_[op]) continue;
      for (auto i = exchange->messages.begin; i < exchange->messages.end; ++i) {
        Ends& ends = ends_[program_.exchange_messages[i].value];
        (exchange->sends ? ends.send : ends.receive) = OpId(op);
      }
    }
  }

  void append(std::size_t op, std::vector<Interval>& out) const {
    const auto* exchange = std::get_if<Exchange>(&program_.ops[op].what);
    if (exchange == nullptr) {
      const Interval work{set_started_[sets_[op]], times_[op]->end};
      if (work.start < work.end) out.push_back(work);
      return;
    }
    // The message that starts last lasts until the op ends; the others last until the first of
    // their two ends has ended.
    std::vector<Interval> parts;
    Seconds last(-1e300);
    for (auto i = exchange->messages.begin; i < exchange->messages.end; ++i) {
      const Ends& ends = ends_[program_.exchange_messages[i].value];
      Interval part{started_[op], times_[op]->end};
      if (ends.send && ends.receive) {
        const std::size_t send = ends.send->value, receive = ends.receive->value;
        part = {std::max(started_[send], started_[receive]),
                std::min(times_[send]->end, times_[receive]->end)};
      }
      last = std::max(last, part.start);
      parts.push_back(part);
    }
    for (Interval& part : parts) {
      if (part.start == last) part.end = times_[op]->end;
    }
    std::erase_if(parts, [](const Interval& part) { return part.end <= part.start; });
    for (const Interval& part : joined(std::move(parts))) out.push_back(part);
  }

  const Program& program_;
  std::vector<std::optional<Interval>> times_;
  std::vector<Seconds> started_;      // by op
  std::vector<std::uint32_t> sets_;   // by op
  std::vector<Seconds> set_started_;  // by set
  std::vector<Ends> ends_;            // by message
};

}  // namespace

Activity find_activity(const Program& program, const Timeline& timeline) {
  return Finder(program, timeline).find();
}

std::vector<std::optional<Interval>> recorded(const Program& program, const Timeline& timeline) {
  std::vector<std::optional<Interval>> times(program.ops.size());
  for (const OpTime& time : timeline.ops) times.at(time.op.value) = Interval{time.start, time.end};
  return times;
}

std::optional<Seconds> time_at_work(const Activity& activity, const std::vector<OpId>& members) {
  std::optional<Interval> whole;
  for (const OpId op : members) {
    const Range parts = activity.of[op.value];
    if (parts.size() == 0) continue;
    if (parts.size() > 1) return std::nullopt;
    const Interval& part = activity.intervals[parts.begin];
    if (!whole) whole = part;
    whole->start = std::min(whole->start, part.start);
    whole->end = std::max(whole->end, part.end);
  }
  if (!whole) return std::nullopt;
  return whole->end - whole->start;
}

std::vector<Interval> joined(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::vector<Interval> result;
  for (const Interval& next : intervals) {
    if (!result.empty() && next.start <= result.back().end) {
      result.back().end = std::max(result.back().end, next.end);
    } else {
      result.push_back(next);
    }
  }
  return result;
}

Seconds union_length(std::vector<Interval> intervals) {
  Seconds length{};
  for (const Interval& interval : joined(std::move(intervals)))
    length += interval.end - interval.start;
  return length;
}

std::vector<std::uint32_t> rendezvous_sets(const Program& program) {
  std::map<std::pair<Rank, GroupId>, std::uint32_t>
      computes;  // number of compute ops with inner collectives so far, in the rank's order
  std::map<std::tuple<bool, GroupId, std::uint32_t>, std::uint32_t> first;
  std::vector<std::uint32_t> sets(program.ops.size());
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const Op& what = program.ops[op];
    const auto own = static_cast<std::uint32_t>(op);
    sets[op] = own;
    if (const auto* collective = std::get_if<Collective>(&what.what)) {
      sets[op] =
          first.try_emplace({true, collective->group, collective->sequence}, own).first->second;
    } else if (std::holds_alternative<Compute>(what.what) && what.group.valid()) {
      const std::uint32_t sequence = computes[{program.rank_of(what), what.group}]++;
      sets[op] = first.try_emplace({false, what.group, sequence}, own).first->second;
    }
  }
  return sets;
}

}  // namespace polyphony::traces
