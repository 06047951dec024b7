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

// Exchanges that one thread queued: those with one launch, with the same other rank and in the same
// direction, run one after another in the order in which they were queued.
std::string find_crossed_exchange(const Program& program, const std::vector<Span>& spans) {
  for (std::uint32_t r = 0; r < program.rank_ops.size(); ++r) {
    const QueueOrder order(program, Rank(r));
    std::map<std::pair<Rank, bool>, OpId> last;
    for (const Launch& launch : order.launches()) {
      if (launch.messages.size() == 0 || !launch.first || !launch.last) continue;
      const Message& ends = program.messages[order.messages(launch).front().value];
      const bool sends = std::get<Exchange>(program.ops[launch.op.value].what).sends;
      const auto [before, first] =
          last.try_emplace({sends ? ends.destination : ends.source, sends}, launch.op);
      if (!first && spans[launch.op.value].start < spans[before->second.value].end)
        return describe(program, launch.op) + " ran before " + describe(program, before->second);
      before->second = launch.op;
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
  std::map<StreamId, double> stream_end;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (!(spans[i].start > 0 && spans[i].end >= spans[i].start))
      return describe(program, OpId(i)) + " never ran";
    const bool in_order = !queued || !std::holds_alternative<Exchange>(op.what);
    if (in_order && spans[i].start < stream_end[op.stream])
      return describe(program, OpId(i)) + " ran before its action";
    stream_end[op.stream] = spans[i].end;
    for (std::uint32_t w = op.waits_for.begin; w < op.waits_for.end; ++w)
      if (spans[i].start < spans[program.waits[w].value].end)
        return describe(program, OpId(i)) + " did not wait for " +
               describe(program, program.waits[w]);
  }
  if (std::string text = find_lone_message(program, spans, apart); !text.empty()) return text;
  if (std::string text = find_lone_collective(program, spans, apart); !text.empty()) return text;
  return queued ? find_crossed_exchange(program, spans) : "";
}

}  // namespace polyphony::exec::testing
