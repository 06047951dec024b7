#include "traces/replay/node_times.h"

#include <algorithm>

#include "shared/error.h"
#include "traces/compare/activity.h"

namespace polyphony::traces {
namespace {

// The two ops of a message, and whether it ends with the receive.
struct Ends {
  OpId send, receive;
  bool last = false;
};

class Player {
 public:
  Player(const Program& program, const Compiled& compiled, const Timeline& timeline)
      : program_(program), compiled_(compiled), recorded_(program.ops.size()) {
    const auto times = recorded(program, timeline);
    for (std::size_t op = 0; op < times.size(); ++op) {
      POLYPHONY_CHECK(times[op], "op " << op << " was not recorded");
      recorded_[op] = *times[op];
    }
    find_ends();
  }

  NodeTimes play() {
    const std::size_t count = compiled_.nodes.size();
    NodeTimes result{std::vector<Seconds>(count), std::vector<Seconds>(count)};
    std::vector<Seconds> ready(count);
    const std::vector<Span> spans = node_spans();
    for (std::uint32_t node = 0; node < count; ++node) {
      if (compiled_.predecessors[node] == 0) {
        result.late[node] = std::max(Seconds(0), spans[node].start);
        ready[node] = result.late[node];
      }
      const Seconds end = std::max(ready[node], end_of(node, ready[node], spans[node]));
      result.time[node] = end - ready[node];
      for (auto i = compiled_.successor_begin[node]; i < compiled_.successor_begin[node + 1]; ++i) {
        Seconds& next = ready[compiled_.successors[i]];
        next = std::max(next, end);
      }
    }
    return result;
  }

 private:
  // Information about the ops that a node ends or starts.
  struct Span {
    Seconds start{}, end{};
    bool receives = false;  // a join that ends a receive
  };

  std::vector<Span> node_spans() const {
    std::vector<Span> spans(compiled_.nodes.size());
    for (std::size_t op = 0; op < program_.ops.size(); ++op) {
      Span& first = spans[compiled_.op_start[op]];
      first.start = std::max(first.start, recorded_[op].start);
      Span& last = spans[compiled_.op_end[op]];
      last.end = std::max(last.end, recorded_[op].end);
      const auto* exchange = std::get_if<Exchange>(&program_.ops[op].what);
      if (exchange != nullptr && !exchange->sends) last.receives = true;
    }
    return spans;
  }

  void find_ends() {
    ends_.resize(program_.messages.size());
    for (std::size_t op = 0; op < program_.ops.size(); ++op) {
      const auto* exchange = std::get_if<Exchange>(&program_.ops[op].what);
      if (exchange == nullptr) continue;
      for (auto i = exchange->messages.begin; i < exchange->messages.end; ++i) {
        Ends& ends = ends_[program_.exchange_messages[i].value];
        (exchange->sends ? ends.send : ends.receive) = OpId(op);
      }
    }
    for (const Op& op : program_.ops) {
      const auto* exchange = std::get_if<Exchange>(&op.what);
      if (exchange == nullptr || exchange->sends || exchange->messages.size() == 0) continue;
      Ends* last = nullptr;
      for (auto i = exchange->messages.begin; i < exchange->messages.end; ++i) {
        Ends& ends = ends_[program_.exchange_messages[i].value];
        if (last == nullptr || begun(ends) >= begun(*last)) last = &ends;
      }
      last->last = true;
    }
  }
  Seconds begun(const Ends& ends) const {
    return std::max(recorded_[ends.send.value].start, recorded_[ends.receive.value].start);
  }

  Seconds end_of(std::uint32_t node, Seconds ready, const Span& span) const {
    switch (compiled_.nodes[node].kind) {
      case NodeKind::join:
        return span.receives ? span.end : ready;
      case NodeKind::message: {
        const Ends& ends = ends_[compiled_.nodes[node].what];
        const Seconds received = recorded_[ends.receive.value].end;
        return ends.last ? received : std::min(recorded_[ends.send.value].end, received);
      }
      case NodeKind::compute:
      case NodeKind::collective:
      case NodeKind::copy:
        return span.end;
    }
    return ready;
  }

  const Program& program_;
  const Compiled& compiled_;
  std::vector<Interval> recorded_;  // by op
  std::vector<Ends> ends_;          // by message
};

}  // namespace

NodeTimes node_times(const Program& program, const Compiled& compiled, const Timeline& timeline) {
  return Player(program, compiled, timeline).play();
}

}  // namespace polyphony::traces
