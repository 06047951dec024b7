#include "traces/chakra/execution_trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "shared/cost/cost_model.h"
#include "shared/error.h"
#include "traces/chakra/node_writer.h"

namespace polyphony::traces {
namespace {

// Returns the i-th of n nearly equal integer parts of a value.
std::uint64_t part_of(std::int64_t all, std::size_t i, std::size_t n) {
  const auto whole = static_cast<std::uint64_t>(std::max<std::int64_t>(0, all));
  return whole / n + (i < whole % n ? 1 : 0);
}

}  // namespace

// The graph of one rank, its nodes numbered from 1 in the order in which ops start.
class RankGraph {
 public:
  RankGraph(ExecutionTraces& of, Rank rank) : of_(of), program_(of.program_), rank_(rank) {}

  std::string write() {
    number();
    file_ = trace_head({.program = of_.hash_, .rank = rank_.value, .ranks = program_.ranks});
    for (const OpId op : order_) write_op(op);
    return std::move(file_);
  }

 private:
  struct Place {
    std::uint64_t first = 0, last = 0;   // node ids; successors wait for `last`
    std::uint32_t before = OpId::kNone;  // previous op of the stream
  };
  Place& place(OpId op) { return places_[op.value - ops_.begin]; }
  const Op& op_at(OpId id) const { return program_.ops[id.value]; }
  Span span(OpId op) const {
    const OpTime& time = of_.timeline_.ops[op.value];
    return {time.start, time.end};
  }
  bool local(MessageId message) const {
    const Message& moved = program_.messages[message.value];
    return moved.source == moved.destination;
  }

  // Returns the number of an op's own nodes.
  std::uint64_t nodes_of(OpId id) const {
    const Op& op = op_at(id);
    if (const auto* exchange = std::get_if<Exchange>(&op.what)) {
      std::uint64_t count = exchange->messages.size() == 1 ? 0 : 1;
      for (auto i = exchange->messages.begin; i < exchange->messages.end; ++i)
        if (!exchange->sends || !local(program_.exchange_messages[i])) ++count;
      return count;
    }
    if (std::holds_alternative<Compute>(op.what))
      return std::max<std::uint64_t>(1, 2 * of_.cutter_.of(id).calls.size());
    return 1;
  }

  void number() {
    ops_ = program_.ops_of(rank_);
    places_.resize(ops_.size());
    std::map<StreamId, std::uint32_t> last_of_stream;
    for (std::uint32_t op = ops_.begin; op < ops_.end; ++op) {
      order_.emplace_back(op);
      const auto [last, first] = last_of_stream.try_emplace(program_.ops[op].stream, op);
      if (!first) place(OpId(op)).before = std::exchange(last->second, op);
    }
    std::stable_sort(order_.begin(), order_.end(),
                     [&](OpId a, OpId b) { return span(a).start < span(b).start; });
    std::uint64_t next = 1;
    for (const OpId op : order_) {
      const std::uint64_t count = nodes_of(op);
      place(op).first = next;
      place(op).last = next + count - 1;
      next += count;
    }
    // A send that consists of local copies only has no node of its own.
    for (const OpId op : order_)
      if (const auto* exchange = std::get_if<Exchange>(&op_at(op).what);
          exchange != nullptr && exchange->sends && exchange->messages.size() == 1 &&
          local(program_.exchange_messages[exchange->messages.begin]))
        place(op).last = node_of_message(program_.exchange_messages[exchange->messages.begin]);
  }

  // Node of this rank's end of a message; for a local copy its only node, which belongs to the
  // receive.
  std::uint64_t node_of_message(MessageId message) {
    const bool sends = program_.messages[message.value].source == rank_ && !local(message);
    const OpId op = (sends ? of_.sender_ : of_.receiver_)[message.value];
    const auto& exchange = std::get<Exchange>(op_at(op).what);
    std::uint64_t node = place(op).first;
    for (auto i = exchange.messages.begin; program_.exchange_messages[i] != message; ++i)
      if (!sends || !local(program_.exchange_messages[i])) ++node;
    return node;
  }

  std::vector<std::uint64_t> follows(OpId id) {
    std::vector<std::uint64_t> after;
    if (place(id).before != OpId::kNone) after.push_back(place(OpId(place(id).before)).last);
    const Range waits = op_at(id).waits_for;
    for (auto i = waits.begin; i < waits.end; ++i) {
      const OpId wait = program_.waits[i];
      POLYPHONY_CHECK(wait.value >= ops_.begin && wait.value < ops_.end,
                      "op " << id.value << " waits for another rank's");
      after.push_back(place(wait).last);
    }
    return sorted(std::move(after));
  }
  static std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> after) {
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    return after;
  }

  void write_op(OpId id) {
    const Op& op = op_at(id);
    if (const auto* exchange = std::get_if<Exchange>(&op.what))
      return write_exchange(id, *exchange);
    if (const auto* collective = std::get_if<Collective>(&op.what)) {
      const Bytes bytes = collective->purpose == Purpose::gradients
                              ? reduced_bytes(of_.profile_, program_.precision, collective->bytes)
                              : collective->bytes;
      write_collective(place(id).first, describe(program_, id), follows(id), span(id),
                       {collective->kind, bytes, collective->group});
      return;
    }
    if (const auto* copy = std::get_if<HostCopy>(&op.what)) {
      NodeWriter node(place(id).first, describe(program_, id),
                      copy->to_host ? NodeType::store : NodeType::load, follows(id), span(id));
      node.add("tensor_size", ValueType::uint64, count(copy->bytes)).append_to(file_);
      return;
    }
    write_compute(id);
  }

  struct Call {
    CollectiveKind kind;
    Bytes bytes;
    GroupId group;
  };
  void write_collective(std::uint64_t id, const std::string& name,
                        const std::vector<std::uint64_t>& after, Span when, const Call& call) {
    const std::size_t ranks = program_.groups[call.group.value].members.size();
    if (ranks < 2) {  // a group of one rank sends nothing
      NodeWriter(id, name, NodeType::compute, after, when, On::processor).append_to(file_);
      return;
    }
    NodeWriter(id, name, NodeType::collective, after, when)
        .add("comm_type", ValueType::int64, comm_type(call.kind))
        .add("comm_size", ValueType::int64, count(given_in(call.kind, call.bytes, ranks)))
        .add("pg_name", std::to_string(call.group.value + 1))
        .append_to(file_);
  }

  void write_compute(OpId id) {
    const OpParts& parts = of_.cutter_.of(id);
    const std::string name = describe(program_, id);
    const Span whole = span(id);
    const std::size_t pieces = std::max<std::size_t>(1, parts.calls.size());
    double computing = 1;
    for (const InnerCall& call : parts.calls) computing -= call.share;
    std::vector<std::uint64_t> after = follows(id);
    std::uint64_t next = place(id).first;
    double at = 0;  // position within the op's time
    const auto until = [&](double share) {
      const Seconds start = whole.start + at * (whole.end - whole.start);
      at += share;
      return Span{start, whole.start + at * (whole.end - whole.start)};
    };
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      Span when = until(computing / static_cast<double>(pieces));
      if (parts.calls.empty()) when.end = whole.end;
      // An update has no FLOPs in the cost model. A roofline needs operations, and the bytes
      // determine its time.
      const std::int64_t flops =
          parts.flops.value > 0 ? std::llround(parts.flops.value) : parts.bytes.value;
      NodeWriter(next, name, NodeType::compute, after, when)
          .add("num_ops", ValueType::int64, part_of(flops, piece, pieces))
          .add("tensor_size", ValueType::uint64, part_of(parts.bytes.value, piece, pieces))
          .append_to(file_);
      after = {next++};
      if (parts.calls.empty()) break;
      const InnerCall& call = parts.calls[piece];
      when = until(call.share);
      if (piece + 1 == pieces) when.end = whole.end;
      write_collective(next, name, after, when,
                       {call.kind, call.bytes, of_.cutter_.group_of(id, call.over)});
      after = {next++};
    }
  }

  void write_exchange(OpId id, const Exchange& exchange) {
    const std::string name = describe(program_, id);
    std::vector<std::uint64_t> ends;
    for (auto i = exchange.messages.begin; i < exchange.messages.end; ++i) {
      const MessageId message = program_.exchange_messages[i];
      ends.push_back(node_of_message(message));
      if (exchange.sends && local(message)) continue;
      write_message(message, id, name, exchange.sends, ends.back());
    }
    if (exchange.messages.size() == 1) return;
    std::vector<std::uint64_t> after = follows(id);
    after.insert(after.end(), ends.begin(), ends.end());
    const Seconds end = span(id).end;
    NodeWriter(place(id).last, name, NodeType::compute, sorted(std::move(after)), {end, end},
               On::processor)
        .append_to(file_);
  }

  void write_message(MessageId message, OpId id, const std::string& name, bool sends,
                     std::uint64_t node_id) {
    const Message& moved = program_.messages[message.value];
    const Span from = span(of_.sender_[message.value]), to = span(of_.receiver_[message.value]);
    const Span when{std::max(from.start, to.start), std::min(from.end, to.end)};
    std::vector<std::uint64_t> after = follows(id);
    if (local(message)) {
      const std::vector<std::uint64_t> other = follows(of_.sender_[message.value]);
      after.insert(after.end(), other.begin(), other.end());
      NodeWriter(node_id, name, NodeType::compute, sorted(std::move(after)), when, On::processor)
          .append_to(file_);
      return;
    }
    NodeWriter(node_id, name, sends ? NodeType::send : NodeType::receive, after, when)
        .add("comm_size", ValueType::int64, count(moved.bytes))
        .add("comm_src", ValueType::int32, moved.source.value)
        .add("comm_dst", ValueType::int32, moved.destination.value)
        .add("comm_tag", ValueType::int32, message.value)
        .append_to(file_);
  }

  static std::uint64_t count(Bytes bytes) { return static_cast<std::uint64_t>(bytes.value); }

  ExecutionTraces& of_;
  const Program& program_;
  Rank rank_;
  Range ops_{};
  std::vector<OpId> order_;
  std::vector<Place> places_;
  std::string file_;
};

ExecutionTraces::ExecutionTraces(const Program& program, const Timeline& timeline,
                                 const Cluster& cluster, const HardwareProfile& profile)
    : program_(program),
      timeline_(timeline),
      profile_(profile),
      hash_(hash(program)),
      cutter_(program, cluster, profile),
      sender_(program.messages.size()),
      receiver_(program.messages.size()) {
  POLYPHONY_CHECK(!program.only.valid(), "a part of a Program");
  POLYPHONY_CHECK(timeline.ops.size() == program.ops.size(), "a partial Timeline");
  for (std::uint32_t op = 0; op < program.ops.size(); ++op) {
    const auto* exchange = std::get_if<Exchange>(&program.ops[op].what);
    if (exchange == nullptr) continue;
    for (auto i = exchange->messages.begin; i < exchange->messages.end; ++i)
      (exchange->sends ? sender_ : receiver_)[program.exchange_messages[i].value] = OpId(op);
  }
}

std::string ExecutionTraces::rank(Rank rank) { return RankGraph(*this, rank).write(); }

std::string ExecutionTraces::groups() const {
  std::string text = "{";
  for (std::size_t g = 0; g < program_.groups.size(); ++g) {
    const RankList& members = program_.groups[g].members;
    if (members.size() < 2) continue;
    text += std::string(text.size() > 1 ? ",\n" : "\n") + "  \"" + std::to_string(g + 1) + "\": [";
    for (std::size_t i = 0; i < members.size(); ++i)
      text += (i > 0 ? ", " : "") + std::to_string(members[i].value);
    text += "]";
  }
  return text + "\n}\n";
}

}  // namespace polyphony::traces
