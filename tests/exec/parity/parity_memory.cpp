#include "tests/exec/parity/parity_memory.h"
#include "exec/runner/agreed_names.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "shared/chunk/expand.h"
#include "shared/program/expand_op.h"
#include "tests/exec/support/row_plans.h"

namespace polyphony::exec::testing {
namespace {

// Memory over time as a step function. At the same instant, ends come before starts.
class Curve {
 public:
  explicit Curve(Bytes before) : before_(before) {}
  void from(Seconds from, Bytes bytes) { changes_.push_back({from, bytes}); }
  void until(Seconds to, Bytes bytes) { changes_.push_back({to, Bytes(-bytes.value)}); }
  Bytes peak() {
    std::sort(changes_.begin(), changes_.end());
    Bytes now = before_, most = before_;
    for (const auto& [time, bytes] : changes_) most = std::max(most, now += bytes);
    return most;
  }

 private:
  Bytes before_;
  std::vector<std::pair<Seconds, Bytes>> changes_;  // negative bytes sort first
};

class Times {
 public:
  explicit Times(const std::vector<OpTime>& times) {
    for (const OpTime& time : times) times_[time.op] = time;
  }
  Seconds start(OpId op) const { return times_.at(op).start; }
  Seconds end(OpId op) const { return times_.at(op).end; }

 private:
  std::map<OpId, OpTime> times_;
};

Seat seat_of(const Program& program, const Compute& what, Rank rank) {
  const ParamGroup& group = program.params[what.params.value];
  Seat seat{.tensor = group.shard.tensor_index, .context = 0};
  if (group.context.valid()) {
    seat.context = static_cast<int>(*program.groups[group.context.value].members.find(rank));
  }
  return seat;
}

// Bytes that the Program does not model: saved activations, and what weight gradients wait with.
struct Unknown {
  Bytes tape{}, weights{};
};

Unknown plans_of(const Program& program, const Compute& what, Rank rank, const InputOf& input_of) {
  const Module& module = program.model.modules[what.module.value];
  const WorkInput& input = input_of(what.work);
  const ChunkContext context = chunk_context(program, what);
  const Seat seat = seat_of(program, what, rank);
  return {row_plan_bytes(module, what.layers, input, context, seat),
          weight_plan_bytes(module, what.layers, input, context, seat)};
}

// What experts save for rows beyond (or below) their even share.
Unknown uneven_load(const Program& program, const Compute& what, const OpTraffic& traffic) {
  const Module& module = program.model.modules[what.module.value];
  const ChunkContext context = chunk_context(program, what);
  const std::int64_t element = size_of(context.precision).value;
  const bool trained = module.trainable == Trainable::full;
  const std::int64_t inner = module.expert_ffn / context.expert_tp;
  const std::int64_t per_row = element * (trained ? module.hidden + 3 * inner : 2 * inner) + 2 * 8;
  // Inputs of both GEMMs and their gradients.
  const std::int64_t for_weights = trained ? element * (2 * module.hidden + 3 * inner) : 0;
  const GroupId experts = program.params[what.params.value].expert;
  if (!experts.valid()) return {};
  const std::string name = group_names(program)[experts.value];
  std::int64_t bytes = 0, weights = 0;
  bool there = true;  // alternates: to the experts, and back
  int layer = what.layers.begin;
  for (const GroupCall& call : traffic.calls) {
    if (call.kind != CollectiveKind::all_to_all || call.group != name) continue;
    if (there) {
      while (layers(module)[static_cast<std::size_t>(layer)] != LayerKind::decoder_block ||
             block_at(module, layer - 1).feed_forward != FeedForwardKind::experts)
        ++layer;
      const std::int64_t rows =
          (call.received.value - call.bytes.value) / (element * module.hidden);
      weights += rows * for_weights;
      if (recompute_of(LayerKind::decoder_block, layer, context.recompute, context.recomputed) !=
          Recompute::full)
        bytes += rows * per_row;
      ++layer;
    }
    there = !there;
  }
  return {Bytes(bytes), Bytes(weights)};
}

struct Life {
  OpId made, freed;
};

// One output that several consumers read is one tensor in several buffers: it lives as the last of
// them.
void join_outputs(const Program& program, const Times& times, std::map<BufferId, Life>& lives) {
  std::map<OpId, BufferId> outputs;
  for (auto life = lives.begin(); life != lives.end();) {
    const Buffer& buffer = program.buffers[life->first.value];
    const auto& what = program.ops[life->second.made.value].what;
    if (buffer.kind != BufferKind::boundary || !std::holds_alternative<Compute>(what)) {
      ++life;
      continue;
    }
    const auto [first, fresh] = outputs.try_emplace(life->second.made, life->first);
    if (fresh) {
      ++life;
      continue;
    }
    OpId& freed = lives.at(first->second).freed;
    if (!life->second.freed.valid() ||
        (freed.valid() && times.end(freed) < times.end(life->second.freed)))
      freed = life->second.freed;
    life = lives.erase(life);
  }
}

// The tensors of an input part replace the saved activations that it frees: they count from its
// end.
Seconds counted_from(const Program& program, const Times& times, OpId made) {
  const auto* what = std::get_if<Compute>(&program.ops[made.value].what);
  const bool replaces = what != nullptr && what->phase == Phase::backward_input;
  return replaces ? times.end(made) : times.start(made);
}

}  // namespace

PeakMemory peak_memory(const Program& program, Rank rank, const std::vector<OpTime>& op_times,
                       const std::vector<Block>& blocks, const InputOf& input_of,
                       const Traffic& traffic) {
  const Times times(op_times);
  PeakMemory memory;
  for (const Block& block : blocks)
    if (!block.made.valid()) memory.measured_before += block.bytes;
  Curve measured(memory.measured_before);
  for (const Block& block : blocks) {
    const bool freed = !block.live && block.freed.valid();
    if (block.made.valid() && block.freed == block.made && !block.live) continue;
    if (block.made.valid()) measured.from(counted_from(program, times, block.made), block.bytes);
    if (freed) measured.until(times.end(block.freed), block.bytes);
  }
  memory.measured = measured.peak();

  std::map<BufferId, Life> lives;
  std::map<BufferId, Bytes> plans;
  const Range ops = program.ops_of(rank);
  // For activations restored from the host, and for weight parts.
  std::map<std::tuple<ModuleId, LayerRange, WorkId>, Unknown> unknown;
  std::uint32_t planned_op = OpId::kNone;
  for (std::uint32_t i = ops.begin; i < ops.end; ++i) {
    const Op& op = program.ops[i];
    for (std::uint32_t u = op.buffers.begin; u < op.buffers.end; ++u) {
      const auto& [buffer, use] = program.buffer_uses[u];
      if (program.buffers[buffer.value].kind == BufferKind::host) continue;
      if (use == Use::allocate) lives[buffer].made = OpId(i);
      if (use == Use::free) lives[buffer].freed = OpId(i);
      if (use != Use::allocate) continue;
      const auto* part = std::get_if<Compute>(&op.what);
      if (part != nullptr && part->phase == Phase::backward_input &&
          program.buffers[buffer.value].kind == BufferKind::workspace)
        plans[buffer] += unknown.at({part->module, part->layers, part->work}).weights;
      if (program.buffers[buffer.value].kind != BufferKind::tape) continue;
      if (i == planned_op) continue;  // saved activations in two parts
      planned_op = i;
      if (const auto* copy = std::get_if<HostCopy>(&op.what)) {
        plans[buffer] = unknown.at({copy->module, copy->layers, copy->work}).tape;
        continue;
      }
      const auto& what = std::get<Compute>(op.what);
      Unknown plan = plans_of(program, what, rank, input_of);
      if (const auto moved = traffic.find(OpId(i)); moved != traffic.end()) {
        const Unknown more = uneven_load(program, what, moved->second);
        plan.tape += more.tape;
        plan.weights += more.weights;
      }
      plans[buffer] = plan.tape;
      unknown[{what.module, what.layers, what.work}] = plan;
    }
  }
  for (const ParamGroup& group : program.params)
    if (group.rank == rank) memory.program_before += group.bytes;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    const bool state = buffer.kind == BufferKind::gradient || buffer.kind == BufferKind::optimizer;
    if (buffer.rank == rank && state && lives.count(BufferId(i)) == 0)
      memory.program_before += buffer.bytes;
  }
  join_outputs(program, times, lives);
  Curve planned(memory.program_before);
  for (const auto& [buffer, life] : lives) {
    if (life.made == life.freed) continue;
    const Bytes bytes = program.buffers[buffer.value].bytes +
                        (plans.count(buffer) > 0 ? plans.at(buffer) : Bytes(0));
    planned.from(counted_from(program, times, life.made), bytes);
    if (life.freed.valid()) planned.until(times.end(life.freed), bytes);
  }
  memory.program = planned.peak();
  return memory;
}

}  // namespace polyphony::exec::testing
