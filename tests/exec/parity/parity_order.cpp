#include "tests/exec/parity/parity_order.h"

#include <algorithm>
#include <map>

#include "shared/program/queue_order.h"

namespace polyphony::exec::testing {
namespace {

struct Span {
  double start = 0, end = 0;
};

std::string find_lone_message(const Program& program, const std::vector<Span>& spans,
                              double apart) {
  std::vector<OpId> sends(program.messages.size()), receives(program.messages.size());
  for (std::size_t i = 0; i < program.ops.size(); ++i)
    if (const auto* what = std::get_if<Exchange>(&program.ops[i].what))
      for (std::uint32_t m = what->messages.begin; m < what->messages.end; ++m)
        (what->sends ? sends : receives)[program.exchange_messages[m].value] = OpId(i);
  for (std::size_t m = 0; m < program.messages.size(); ++m) {
    const Span& send = spans[sends[m].value];
    const Span& receive = spans[receives[m].value];
    if (receive.end + apart < send.start)
      return describe(program, receives[m]) + " ended before its send began";
    if (program.messages[m].source != program.messages[m].destination &&
        send.end + apart < receive.start)
      return describe(program, sends[m]) + " ended before its receive began";
  }
  return {};
}
std::string find_lone_collective(const Program& program, const std::vector<Span>& spans,
                                 double apart) {
  std::map<std::pair<GroupId, std::uint32_t>, std::vector<std::size_t>> instances;
  for (std::size_t i = 0; i < program.ops.size(); ++i)
    if (const auto* what = std::get_if<Collective>(&program.ops[i].what))
      instances[{what->group, what->sequence}].push_back(i);
  for (const auto& [key, members] : instances) {
    double last_start = 0, first_end = spans[members.front()].end;
    for (const std::size_t i : members) {
      last_start = std::max(last_start, spans[i].start);
      first_end = std::min(first_end, spans[i].end);
    }
    if (members.size() != program.groups[key.first.value].members.size() ||
        first_end + apart < last_start)
      return describe(program, OpId(members.front())) + " ended before all members began";
  }
  return {};
}

struct Place {
  OpId op;
  std::uint32_t stream;  // a StreamId; or, of queued exchanges, the other rank and the direction
  bool exchange;
};
// Returns a rank's launches in the order in which one thread queues them. Exchanges of several
// launches are left out, because their spans cover other ops.
std::vector<Place> queued_places(const Program& program, Rank rank) {
  std::vector<Place> places;
  const QueueOrder order(program, rank);
  for (const Launch& launch : order.launches()) {
    const Op& op = program.ops[launch.op.value];
    if (launch.messages.size() == 0) {
      places.push_back({launch.op, op.stream.value, false});
    } else if (launch.first && launch.last) {
      const Message& ends = program.messages[order.messages(launch).front().value];
      const bool sends = std::get<Exchange>(op.what).sends;
      const Rank other = sends ? ends.destination : ends.source;
      places.push_back({launch.op, 2 * other.value + sends, true});
    }
  }
  return places;
}
std::vector<Place> places_of(const Program& program, Rank rank) {
  std::vector<Place> places;
  const Range own = program.ops_of(rank);
  for (std::uint32_t i = own.begin; i < own.end; ++i)
    places.push_back({OpId(i), program.ops[i].stream.value, false});
  return places;
}

std::string find_overlap(const Program& program, const std::vector<Span>& spans, bool queued) {
  for (std::uint32_t r = 0; r < program.rank_ops.size(); ++r) {
    std::map<std::pair<bool, std::uint32_t>, OpId> latest;  // op of each stream
    for (const Place& place :
         queued ? queued_places(program, Rank(r)) : places_of(program, Rank(r))) {
      const auto [before, first] = latest.try_emplace({place.exchange, place.stream}, place.op);
      if (!first && spans[place.op.value].start < spans[before->second.value].end)
        return describe(program, place.op) + " started before " +
               describe(program, before->second) + " ended, the op before it on its stream";
      before->second = place.op;
    }
  }
  return {};
}

}  // namespace

std::string find_disorder(const Program& program, const std::vector<torch::Tensor>& times,
                          double apart, bool queued) {
  std::vector<Span> spans(program.ops.size());
  for (std::size_t r = 0; r < times.size(); ++r) {
    const Range ops = program.rank_ops[r];
    const double* time = times[r].const_data_ptr<double>();
    for (std::uint32_t i = ops.begin; i < ops.end; ++i, time += 2) spans[i] = {time[0], time[1]};
  }
  for (std::size_t i = 0; i < spans.size(); ++i)
    if (!(spans[i].start > 0 && spans[i].end >= spans[i].start))
      return describe(program, OpId(i)) + " never ran";
  if (std::string text = find_overlap(program, spans, queued); !text.empty()) return text;
  for (std::size_t i = 0; i < program.ops.size(); ++i)
    for (const Range waits = program.ops[i].waits_for;
         const OpId before : std::span(program.waits).subspan(waits.begin, waits.size()))
      if (spans[i].start < spans[before.value].end)
        return describe(program, OpId(i)) + " did not wait for " + describe(program, before);
  if (std::string text = find_lone_message(program, spans, apart); !text.empty()) return text;
  return find_lone_collective(program, spans, apart);
}

}  // namespace polyphony::exec::testing
