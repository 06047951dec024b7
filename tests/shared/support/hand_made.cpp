#include "tests/shared/support/hand_made.h"

#include <algorithm>
#include <utility>

#include "shared/error.h"

namespace polyphony::hand_made {

Module language(int blocks) {
  return {.name = "language",
          .kind = ModuleKind::language,
          .layers = blocks,
          .hidden = 8,
          .heads = 4,
          .kv_heads = 4,
          .head_dim = 2,
          .ffn = 16,
          .gated = true,
          .vocab = 32};
}

WorkSize language_size() {
  return {.tokens = kTokens,
          .pairs = kTokens * (kTokens + 1) / 2,
          .text_tokens = kTokens,
          .loss_tokens = kTokens - 1,
          .sequences = 1};
}

StreamId Maker::stream(Rank rank, StreamKind kind, const std::string& name) {
  const Stream wanted{rank, kind, name};
  const auto found = std::find(program.streams.begin(), program.streams.end(), wanted);
  const auto position = static_cast<std::size_t>(found - program.streams.begin());
  if (found == program.streams.end()) program.streams.push_back(wanted);
  return StreamId(position);
}

BufferId Maker::boundary(Rank rank, BufferKind kind, std::int64_t rows, std::int32_t width) {
  program.buffers.push_back(
      {.rank = rank, .kind = kind, .rows = rows, .width = width, .bytes = Bytes(rows * width * 4)});
  return BufferId(program.buffers.size() - 1);
}

BufferId Maker::buffer(Rank rank, BufferKind kind, Bytes bytes) {
  program.buffers.push_back({.rank = rank, .kind = kind, .bytes = bytes});
  return BufferId(program.buffers.size() - 1);
}

MessageId Maker::message(BufferId from, BufferId to) {
  const Buffer& source = program.buffers[from.value];
  program.messages.push_back({.source = source.rank,
                              .destination = program.buffers[to.value].rank,
                              .from = from,
                              .to = to,
                              .rows = source.rows,
                              .bytes = source.bytes});
  return MessageId(program.messages.size() - 1);
}

OpId Maker::add(StreamId stream, const decltype(Op::what)& what, const std::vector<OpId>& waits,
                GroupId group) {
  drafts_.push_back({{.stream = stream, .group = group, .what = what}, waits, {}});
  return OpId(drafts_.size() - 1);
}

OpId Maker::exchange(StreamId stream, bool sends, const std::vector<MessageId>& messages,
                     const std::vector<OpId>& waits) {
  auto& all = program.exchange_messages;
  const auto begin = static_cast<std::uint32_t>(all.size());
  all.insert(all.end(), messages.begin(), messages.end());
  return add(stream, Exchange{sends, {begin, static_cast<std::uint32_t>(all.size())}}, waits);
}

void Maker::use(OpId op, BufferId buffer, const std::vector<Use>& uses) {
  for (const Use use : uses) drafts_[op.value].uses.push_back({buffer, use});
}

Program Maker::finish() {
  const auto rank_of = [&](OpId id) { return program.rank_of(drafts_[id.value].op); };
  std::vector<OpId> order;
  for (std::size_t i = 0; i < drafts_.size(); ++i) order.push_back(OpId(i));
  std::stable_sort(order.begin(), order.end(),
                   [&](OpId a, OpId b) { return rank_of(a) < rank_of(b); });
  std::vector<OpId> position(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) position[order[i].value] = OpId(i);

  program.rank_ops.assign(program.ranks, {});
  const auto size = [](const auto& table) { return static_cast<std::uint32_t>(table.size()); };
  for (std::uint32_t rank = 0, next = 0; rank < program.ranks; ++rank) {
    program.rank_ops[rank].begin = next;
    for (; next < order.size() && rank_of(order[next]).value == rank; ++next) {
      const Draft& draft = drafts_[order[next].value];
      Op op = draft.op;
      op.waits_for.begin = size(program.waits);
      for (const OpId id : draft.waits) program.waits.push_back(position[id.value]);
      op.waits_for.end = size(program.waits);
      op.buffers.begin = size(program.buffer_uses);
      for (const BufferUse& use : draft.uses) program.buffer_uses.push_back(use);
      op.buffers.end = size(program.buffer_uses);
      program.ops.push_back(op);
    }
    program.rank_ops[rank].end = next;
  }
  return std::move(program);
}

OpId find(const Program& program, Rank rank, const std::string& description) {
  const Range range = program.rank_ops[rank.value];
  for (std::uint32_t op = range.begin; op < range.end; ++op) {
    if (describe(program, OpId(op)).rfind(description, 0) == 0) return OpId(op);
  }
  POLYPHONY_CHECK(false, "rank " << rank.value << " has no op " << description);
}

namespace {

// Renumbers all references to ops at or after `from`.
void shift(Program& program, std::uint32_t from, std::uint32_t by) {
  for (OpId& wait : program.waits) {
    if (wait.value >= from) wait.value += by;
  }
  for (Range& range : program.rank_ops) {
    if (range.begin >= from) range.begin += by;
    if (range.end >= from) range.end += by;
  }
}

void set_uses(Program& program, OpId op, const std::vector<BufferUse>& uses) {
  auto& all = program.buffer_uses;
  program.ops[op.value].buffers.begin = static_cast<std::uint32_t>(all.size());
  all.insert(all.end(), uses.begin(), uses.end());
  program.ops[op.value].buffers.end = static_cast<std::uint32_t>(all.size());
}

std::vector<BufferUse> uses_of(const Program& program, OpId op) {
  const Range range = program.ops[op.value].buffers;
  return {program.buffer_uses.begin() + range.begin, program.buffer_uses.begin() + range.end};
}

}  // namespace

void remove_op(Program& program, OpId op) {
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Range range = program.ops[i].waits_for;
    std::vector<OpId> kept;
    for (std::uint32_t k = range.begin; k < range.end; ++k) {
      if (program.waits[k] != op) kept.push_back(program.waits[k]);
    }
    if (kept.size() < range.size()) set_waits(program, OpId(i), kept);
  }
  program.ops.erase(program.ops.begin() + op.value);
  shift(program, op.value + 1, static_cast<std::uint32_t>(-1));
}

OpId repeat_op(Program& program, OpId op) {
  Op copy = program.ops[op.value];
  copy.waits_for = copy.buffers = {};
  program.ops.insert(program.ops.begin() + op.value + 1, copy);
  shift(program, op.value + 1, 1);
  return OpId(op.value + 1);
}

void set_waits(Program& program, OpId op, const std::vector<OpId>& waits) {
  auto& all = program.waits;
  program.ops[op.value].waits_for.begin = static_cast<std::uint32_t>(all.size());
  all.insert(all.end(), waits.begin(), waits.end());
  program.ops[op.value].waits_for.end = static_cast<std::uint32_t>(all.size());
}

void add_use(Program& program, OpId op, BufferId buffer, Use use) {
  std::vector<BufferUse> uses = uses_of(program, op);
  uses.push_back({buffer, use});
  set_uses(program, op, uses);
}

void drop_use(Program& program, OpId op, Use use, BufferKind kind) {
  std::vector<BufferUse> uses = uses_of(program, op);
  std::erase_if(uses, [&](const BufferUse& value) {
    return value.use == use && program.buffers[value.buffer.value].kind == kind;
  });
  set_uses(program, op, uses);
}

Compiled compile_sound(const Program& program) {
  auto result = compile(program);
  const Fault* fault = std::get_if<Fault>(&result);
  POLYPHONY_CHECK(fault == nullptr, fault->text);
  return std::get<Compiled>(std::move(result));
}

CostTable fixed_costs(const Program& program, const Compiled& compiled, const Lengths& lengths) {
  CostTable costs;
  costs.nodes.resize(compiled.nodes.size());
  costs.network.node_of.assign(program.ranks, 0);
  costs.network.node_rate = costs.network.fabric_rate = BytesPerSecond(1);
  for (std::size_t i = 0; i < compiled.nodes.size(); ++i) {
    const Node& node = compiled.nodes[i];
    if (node.kind == NodeKind::message) costs.nodes[i].delay = lengths.message;
    if (node.kind == NodeKind::collective) costs.nodes[i].delay = lengths.collective;
    if (node.kind != NodeKind::compute) continue;
    const auto* compute = std::get_if<Compute>(&program.ops[node.what].what);
    if (compute == nullptr) continue;
    costs.nodes[i].duration = compute->phase == Phase::forward ? lengths.forward : lengths.backward;
  }
  return costs;
}

}  // namespace polyphony::hand_made
