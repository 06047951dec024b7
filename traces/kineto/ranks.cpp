#include "traces/kineto/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <tuple>

#include "shared/error.h"
#include "shared/text/figure_text.h"

namespace polyphony::traces {
namespace {

constexpr const char* kHint = "give the traces of one job, one per rank";

Nanoseconds median(std::vector<Nanoseconds> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? Nanoseconds{} : values[values.size() / 2];
}

std::set<std::int64_t> step_numbers(const DeviceTrace& trace) {
  std::set<std::int64_t> numbers;
  for (const StepRange& step : trace.steps) numbers.insert(step.number);
  return numbers;
}

void check_together(const DeviceTrace& first, const DeviceTrace& trace) {
  if (trace.world && first.world && trace.world != first.world) {
    throw InputError(trace.file, "/distributedInfo/world_size",
                     "is of a job with " + std::to_string(*trace.world) + " ranks, but " +
                         first.file + " is of a job with " + std::to_string(*first.world),
                     kHint);
  }
  const std::set<std::int64_t> steps = step_numbers(trace), others = step_numbers(first);
  const bool common = std::any_of(steps.begin(), steps.end(),
                                  [&](std::int64_t step) { return others.count(step) > 0; });
  if (!common && !steps.empty() && !others.empty()) {
    throw InputError(trace.file, "/traceEvents",
                     "its steps (from " + std::to_string(*steps.begin()) + ") do not occur in " +
                         first.file + ", which begins with step " + std::to_string(*others.begin()),
                     kHint);
  }
  // Hosts' clocks differ by less than an hour.
  constexpr Nanoseconds kHour = std::chrono::hours(1);
  if (trace.unix_of && first.unix_of) {
    const Nanoseconds apart = *trace.unix_of - *first.unix_of;
    if (apart > kHour || apart < -kHour)
      throw InputError(trace.file, "",
                       "was recorded " + seconds_text(Seconds(std::abs(Seconds(apart).count()))) +
                           (apart.count() > 0 ? " after " : " before ") + first.file,
                       kHint);
  }
}

void check(const std::vector<DeviceTrace>& traces) {
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const DeviceTrace& trace = traces[i];
    if (traces.size() > 1 && !trace.rank) {
      throw InputError(
          trace.file, "/distributedInfo/rank",
          "the key is missing: the rank of the trace is unknown",
          "of one run: add \"distributedInfo\": {\"rank\": N} to each file; of several: give "
          "`calibrate` an evidence file with an entry of each");
    }
    if (trace.rank && trace.world && *trace.rank >= *trace.world) {
      throw InputError(trace.file, "/distributedInfo/rank",
                       "rank " + std::to_string(*trace.rank) + " does not exist among " +
                           std::to_string(*trace.world),
                       "check distributedInfo in the file");
    }
    if (i == 0) continue;
    if (trace.rank == traces[i - 1].rank) {
      throw InputError(trace.file, "/distributedInfo/rank",
                       "rank " + std::to_string(*trace.rank) + " is also in " + traces[i - 1].file,
                       kHint);
    }
    check_together(traces[0], trace);
  }
}

// One collective on all ranks that recorded it.
using Key = std::tuple<std::int64_t, CollectiveShape, std::size_t>;  // step, shape, index
using Matches = std::map<Key, std::vector<const DeviceEvent*>>;      // by rank; null: not recorded

Matches match(const std::vector<DeviceTrace>& traces) {
  Matches matches;
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    const DeviceTrace& trace = traces[rank];
    std::map<std::pair<std::int64_t, CollectiveShape>, std::size_t> seen;
    for (const DeviceEvent& event : trace.events) {
      if (event.kind != KernelClass::collective || event.detail == kNone || event.step < 0)
        continue;
      const CollectiveShape& shape = trace.collectives[event.detail];
      const std::int64_t step = trace.steps[static_cast<std::size_t>(event.step)].number;
      auto& events = matches[{step, shape, seen[{step, shape}]++}];
      events.resize(traces.size());
      events[rank] = &event;
    }
  }
  // Not recorded on all ranks: the collective has another group, or belongs to a part of the job
  // that one rank did not record.
  std::set<std::pair<std::int64_t, CollectiveShape>> uneven;
  for (const auto& [key, events] : matches)
    if (std::count(events.begin(), events.end(), nullptr) > 0)
      uneven.emplace(std::get<0>(key), std::get<1>(key));
  std::erase_if(matches, [&](const auto& match) {
    return uneven.count({std::get<0>(match.first), std::get<1>(match.first)}) > 0;
  });
  return matches;
}

bool ends_together(CollectiveCall call) {
  return call == CollectiveCall::all_reduce || call == CollectiveCall::all_gather ||
         call == CollectiveCall::reduce_scatter;
}

void align(RankSet& set, const Matches& matches) {
  const bool told = std::all_of(set.traces.begin(), set.traces.end(),
                                [](const DeviceTrace& trace) { return trace.unix_of.has_value(); });
  const auto origin = [&](std::size_t rank) {
    return told ? *set.traces[rank].unix_of : set.traces[rank].origin;
  };
  Nanoseconds earliest = origin(0);
  for (std::size_t rank = 0; rank < set.traces.size(); ++rank) {
    ClockShift clock;
    clock.shift = origin(rank);
    std::vector<Nanoseconds> apart;
    for (const auto& [key, events] : matches)
      if (rank > 0 && ends_together(std::get<1>(key).call))
        apart.push_back(origin(rank) + events[rank]->end() - origin(0) - events[0]->end());
    const Nanoseconds ahead = median(apart);
    for (Nanoseconds& one : apart) one = Nanoseconds(std::abs((one - ahead).count()));
    clock.spread = median(apart);
    clock.matched = static_cast<std::int64_t>(apart.size());
    constexpr Nanoseconds kLeast = std::chrono::microseconds(100);
    // On CPUs a collective ends when the thread of its rank gets a core.
    clock.moved = !set.traces[rank].on_host &&
                  std::abs(ahead.count()) > std::max(4 * clock.spread, kLeast).count();
    if (clock.moved) {
      clock.shift -= ahead;
      set.notes.push_back(
          "the clock of rank " + std::to_string(*set.traces[rank].rank) + " is " +
          seconds_text(Seconds(std::abs(Seconds(ahead).count()))) +
          (ahead.count() > 0 ? " ahead of" : " behind") + " that of rank " +
          std::to_string(*set.traces[0].rank) + " according to " + std::to_string(clock.matched) +
          " collectives that end together: corrected to within " + seconds_text(clock.spread));
    }
    earliest = std::min(earliest, clock.shift);
    set.clocks.push_back(clock);
  }
  for (ClockShift& clock : set.clocks) clock.shift -= earliest;
}

}  // namespace

RankSet rank_set(std::vector<DeviceTrace> traces) {
  std::sort(traces.begin(), traces.end(), [](const DeviceTrace& a, const DeviceTrace& b) {
    return std::pair(a.rank, a.file) < std::pair(b.rank, b.file);
  });
  check(traces);
  RankSet set;
  set.traces = std::move(traces);
  for (const DeviceTrace& trace : set.traces) set.times.push_back(rank_times(trace));
  set.last_in.assign(set.traces.size(), 0);
  const Matches matches = set.traces.size() > 1 ? match(set.traces) : Matches{};
  for (const auto& [key, events] : matches) {
    const auto last = std::min_element(
        events.begin(), events.end(),
        [](const DeviceEvent* a, const DeviceEvent* b) { return a->duration < b->duration; });
    ++set.last_in[static_cast<std::size_t>(last - events.begin())];
    ++set.matched;
  }
  align(set, matches);
  return set;
}

std::optional<SlowRank> slow_rank(const RankSet& ranks) {
  if (ranks.traces.size() < 2) return {};
  std::vector<Nanoseconds> busy;
  const auto own = [](const DeviceTimes& times) {
    Nanoseconds sum{};
    for (std::size_t kind = 0; kind < times.classes.size(); ++kind)
      if (static_cast<KernelClass>(kind) != KernelClass::collective)
        sum += times.classes[kind].wall;
    return sum;
  };
  for (const RankTimes& rank : ranks.times) {
    std::vector<Nanoseconds> steps;
    for (const StepTimes& step : rank.steps) steps.push_back(own(step.times));
    busy.push_back(steps.empty() ? own(rank.whole) : median(steps));
  }
  const auto most = std::max_element(busy.begin(), busy.end());
  std::vector<Nanoseconds> sorted = busy;
  std::sort(sorted.begin(), sorted.end());
  return SlowRank{static_cast<std::size_t>(most - busy.begin()), *most,
                  sorted[(sorted.size() - 1) / 2]};
}

}  // namespace polyphony::traces
