// The ops of one chunk and work on one rank: what it receives, computes and sends.
#include <algorithm>

#include "shared/error.h"
#include "shared/lower/lowering.h"
#include "shared/program/expand_op.h"

namespace polyphony::lowering {

std::uint32_t RankLowering::branch_work(const Role& role, int microbatch) const {
  const int lane = b_.plan_.branches[role.branch].lane_index(role.lane);
  return b_.table_.place_of(role.branch, static_cast<std::uint32_t>(microbatch),
                            static_cast<std::uint32_t>(lane),
                            static_cast<std::uint32_t>(role.context));
}

WorkId RankLowering::work_id(const Role& role, int microbatch) const {
  return WorkId(b_.table_.first_work[role.branch] + branch_work(role, microbatch));
}

RankContext RankLowering::context(const Role& role, const ChunkState& chunk, WorkId work,
                                  Recipe recipe) const {
  return {chunk_context(program_,
                        {chunk.chunk.module, chunk.chunk.layers, Phase::forward, work, {}, recipe}),
          role.tensor};
}

std::vector<ParamGroupId> RankLowering::gathers(const ChunkState& chunk) const {
  std::vector<ParamGroupId> groups;
  if (program_.layout.modules[chunk.chunk.module.value].shard != Shard::full) return groups;
  for (const ParamGroupId params : {chunk.params, chunk.experts})
    if (params.valid() && program_.params[params.value].shards.valid()) groups.push_back(params);
  return groups;
}

StreamId RankLowering::stream(StreamKind kind, const std::string& name) {
  const auto [entry, fresh] = streams_.try_emplace(name, StreamId(program_.streams.size()));
  if (fresh) program_.streams.push_back({rank_, kind, name});
  return entry->second;
}

OpId RankLowering::add_op(StreamId stream, GroupId group, decltype(Op::what) what,
                          std::span<const OpId> waits, std::span<const BufferUse> uses) {
  Op op{stream, group, std::move(what), {}, {}};
  op.waits_for.begin = static_cast<std::uint32_t>(program_.waits.size());
  for (const OpId wait : waits)
    if (wait.valid()) program_.waits.push_back(wait);
  op.waits_for.end = static_cast<std::uint32_t>(program_.waits.size());
  op.buffers.begin = static_cast<std::uint32_t>(program_.buffer_uses.size());
  for (const BufferUse& use : uses)
    if (use.buffer.valid()) program_.buffer_uses.push_back(use);
  op.buffers.end = static_cast<std::uint32_t>(program_.buffer_uses.size());
  program_.ops.push_back(std::move(op));
  return OpId(program_.ops.size() - 1);
}

OpId RankLowering::add_compute(const Role& role, const ChunkState& chunk, Phase phase,
                               int microbatch, std::vector<OpId>& waits,
                               std::vector<BufferUse>& uses) {
  for (const ParamGroupId params : gathers(chunk)) {
    waits.push_back(gather_ops_.at(params));
    uses.push_back({gathered_.at(params), Use::read});
  }
  for (const BufferId buffer : freed_after_) uses.push_back({buffer, Use::free});
  waits.insert(waits.end(), sent_.begin(), sent_.end());
  sent_.clear();
  const TurnOf turn = phase == Phase::forward           ? TurnOf::forward
                      : phase == Phase::backward_weight ? TurnOf::weight
                                                        : TurnOf::backward;
  const ChunkPlace place{role.branch, role.stage,
                         static_cast<std::size_t>(&chunk - role.chunks.data())};
  last_compute_ =
      add_op(stream(StreamKind::compute, "compute"), groups(role).cell,
             Compute{chunk.chunk.module, chunk.chunk.layers, phase, work_id(role, microbatch),
                     chunk.params, role.recipes[static_cast<std::size_t>(microbatch)],
                     b_.turns_.at(place, branch_work(role, microbatch), turn)},
             waits, uses);
  return last_compute_;
}

const Side& RankLowering::side(const Port& port, bool backward, bool source) const {
  const Crossing& crossing = *port.crossing;
  if (backward) return source ? crossing.backward_source : crossing.backward_destination;
  return source ? crossing.forward_source : crossing.forward_destination;
}

// Every pair of ends has its own message order, because several chunks of a stage may read one
// edge.
StreamId RankLowering::stream(Port& port, bool backward, Way way) {
  StreamId& known = port.streams[backward ? 1 : 0][static_cast<std::size_t>(way)];
  if (known.valid()) return known;
  const ChunkLink& link = *port.link;
  const auto name_of = [&](const ChunkPlace& place) {
    return program_.model.modules[b_.chunk_at(place).module.value].name + "." +
           std::to_string(place.stage);
  };
  std::string name = name_of(link.producer) + (backward ? "<" : ">") + name_of(link.consumer);
  if (const Chunk& consumer = b_.chunk_at(link.consumer);
      link.input.edge >= 0 && consumer.layers.begin > 0)
    name += "@" + std::to_string(consumer.layers.begin);
  switch (way) {
    case Way::receive:
      return known = stream(StreamKind::receive, name + " receive");
    case Way::send:
      return known = stream(StreamKind::send, name + " send");
    case Way::relay:
      return known = stream(StreamKind::send, name + " relay");
  }
  return known;
}

OpId RankLowering::add_exchange(Port& port, bool backward, Way way,
                                const std::vector<MessageId>& messages, OpId wait, BufferId buffer,
                                bool last) {
  if (messages.empty()) return {};
  Exchange exchange{way != Way::receive,
                    {static_cast<std::uint32_t>(program_.exchange_messages.size()), 0}};
  program_.exchange_messages.insert(program_.exchange_messages.end(), messages.begin(),
                                    messages.end());
  exchange.messages.end = static_cast<std::uint32_t>(program_.exchange_messages.size());
  const BufferUse both[] = {{buffer, exchange.sends ? Use::read : Use::allocate},
                            {buffer, exchange.sends ? Use::free : Use::write}};
  const std::span<const BufferUse> uses(both, way == Way::relay && !last ? 1 : 2);
  return add_op(stream(port, backward, way), {}, exchange, {&wait, 1}, uses);
}

OpId RankLowering::arrive(const Role& role, Port& port, bool backward, int microbatch, OpId slot,
                          std::vector<BufferUse>& uses, std::vector<BufferId>* kept) {
  const auto m = static_cast<std::size_t>(microbatch);
  BufferId buffer = (backward ? port.backwards : port.forwards)[m];
  OpId received;
  if (port.crossing) {
    const Side& end = side(port, backward, false);
    const std::size_t i = entry(role, microbatch, end);
    buffer = end.buffers[i];
    const Side::Led* led = end.led.empty() || role.tensor > 0 ? nullptr : &end.led[i / end.tp];
    if (led) {
      const OpId there =
          add_exchange(port, backward, Way::receive, led->messages, slot, led->buffer);
      if (there.valid())
        add_exchange(port, backward, Way::relay, end.relays[i], there, led->buffer, true);
    }
    received = add_exchange(port, backward, Way::receive, end.messages[i], slot, buffer);
    if (!received.valid()) return {};  // a gradient of zeros
    if (!led && !end.relays.empty() && !end.relays[i].empty())
      received = add_exchange(port, backward, Way::relay, end.relays[i], received, buffer);
  }
  uses.push_back({buffer, Use::read});
  if (kept)
    kept->push_back(buffer);
  else
    uses.push_back({buffer, Use::free});
  return received;
}

BufferId RankLowering::leave(const Role& role, Port& port, bool backward, int microbatch,
                             std::vector<BufferUse>& uses) {
  BufferId buffer;
  bool sent = true;
  if (port.crossing) {
    const Side& end = side(port, backward, true);
    const std::size_t i = entry(role, microbatch, end);
    buffer = end.buffers[i];
    sent = !end.messages[i].empty();
  } else {
    const Chunk& producer = b_.chunk_at(port.link->producer);
    const Module& module = program_.model.modules[producer.module.value];
    std::int64_t rows = rows_leaving(module, producer.layers.end,
                                     program_.size_of(work_id(role, microbatch), producer.module));
    if (b_.shards_rows(producer.module))
      rows = own_rows(rows, b_.plan_.branches[role.branch].grid.tp, role.tensor).size();
    buffer = b_.add_boundary_buffer(
        rank_, backward ? BufferKind::boundary_gradient : BufferKind::boundary, rows, *port.link);
    (backward ? port.backwards : port.forwards)[static_cast<std::size_t>(microbatch)] = buffer;
  }
  uses.push_back({buffer, Use::allocate});
  uses.push_back({buffer, Use::write});
  if (!sent) uses.push_back({buffer, Use::free});  // another replica sends
  return buffer;
}

void RankLowering::depart(const Role& role, Port& port, bool backward, int microbatch, OpId op) {
  if (!port.crossing) return;
  const Side& end = side(port, backward, true);
  const std::size_t i = entry(role, microbatch, end);
  const OpId sent = add_exchange(port, backward, Way::send, end.messages[i], op, end.buffers[i]);
  if (!backward) port.sent[static_cast<std::size_t>(microbatch)] = sent;
  if (b_.stack_.blocking_messages && !backward) sent_.push_back(sent);
}

// Returns the op whose end frees a receive slot: that of the chunk's action as many actions ago as
// there are slots.
OpId RankLowering::slot_after(const std::vector<OpId>& actions) const {
  const auto slots = static_cast<std::size_t>(b_.step_.receive_slots);
  return actions.size() < slots ? OpId{} : actions[actions.size() - slots];
}

void RankLowering::forward(Role& role, ChunkState& chunk, int microbatch, int after_sent) {
  const auto m = static_cast<std::size_t>(microbatch);
  std::vector<BufferUse>& uses = uses_;
  std::vector<OpId>& received = waits_;
  uses.clear();
  received.clear();
  const OpId slot = slot_after(chunk.forwards);
  for (Port* port : chunk.inputs)
    received.push_back(arrive(role, *port, false, microbatch, slot, uses,
                              chunk.visited ? &chunk.arrived[m] : nullptr));
  for (const ChunkState& other : role.chunks)
    for (const Port* port : other.outputs)
      if (after_sent >= 0) received.push_back(port->sent[static_cast<std::size_t>(after_sent)]);
  if (chunk.visited) {
    const ChunkBytes& sizes = bytes(role, chunk, microbatch);
    chunk.tapes[m] = b_.add_buffer(rank_, BufferKind::tape, sizes.tape);
    if (sizes.kept > Bytes(0)) chunk.kept[m] = b_.add_buffer(rank_, BufferKind::tape, sizes.kept);
    for (const BufferId tape : {chunk.tapes[m], chunk.kept[m]}) {
      uses.push_back({tape, Use::allocate});
      uses.push_back({tape, Use::write});
    }
    if (sizes.forward > Bytes(0)) {
      const BufferId besides = b_.add_buffer(rank_, BufferKind::workspace, sizes.forward);
      for (const Use use : {Use::allocate, Use::write, Use::free}) uses.push_back({besides, use});
    }
  }
  for (Port* port : chunk.outputs) leave(role, *port, false, microbatch, uses);
  chunk.forwards.push_back(add_compute(role, chunk, Phase::forward, microbatch, received, uses));
  for (Port* port : chunk.outputs) depart(role, *port, false, microbatch, chunk.forwards.back());
  if (chunk.moves[m]) offload(role, chunk, microbatch, chunk.forwards.back());
}

void RankLowering::backward(Role& role, ChunkState& chunk, int microbatch) {
  const auto m = static_cast<std::size_t>(microbatch);
  std::vector<BufferUse>& uses = uses_;
  std::vector<OpId>& received = waits_;
  uses.clear();
  received.clear();
  const OpId slot = slot_after(chunk.backwards);
  for (Port* port : chunk.outputs)
    if (port->link->input.gradient)
      received.push_back(arrive(role, *port, true, microbatch, slot, uses, nullptr));
  received.push_back(chunk.fetches[m]);
  uses.push_back({chunk.tapes[m], Use::read});
  uses.push_back({chunk.tapes[m], Use::free});
  for (const BufferId input : chunk.arrived[m]) uses.push_back({input, Use::free});
  const ChunkBytes& sizes = bytes(role, chunk, microbatch);
  if (sizes.workspace > Bytes(0)) {
    const BufferId rebuilt = b_.add_buffer(rank_, BufferKind::workspace, sizes.workspace);
    for (const Use use : {Use::allocate, Use::write, Use::free}) uses.push_back({rebuilt, use});
  }
  const bool splits = sizes.splits;
  if (splits) {
    chunk.held[m] = b_.add_buffer(rank_, BufferKind::workspace, sizes.held);
    uses.push_back({chunk.kept[m], Use::read});
    uses.push_back({chunk.held[m], Use::allocate});
    uses.push_back({chunk.held[m], Use::write});
  }
  std::vector<Whole> wholes;
  if (!splits && chunk.trained) {
    wholes = whole_gradients(chunk, uses);
    received.push_back(chunk.last_scatter);  // at most one unsharded gradient per chunk at a time,
    received.push_back(scatters_[0]);        // and one more being reduced
  }
  for (Port* port : chunk.inputs)
    if (port->link->input.gradient) leave(role, *port, true, microbatch, uses);
  const OpId op = add_compute(role, chunk, splits ? Phase::backward_input : Phase::backward,
                              microbatch, received, uses);
  chunk.backwards.push_back(op);
  for (Port* port : chunk.inputs)
    if (port->link->input.gradient) depart(role, *port, true, microbatch, op);
  if (splits || !chunk.trained) return;
  chunk.last_gradient = op;
  scatter(chunk, wholes, op);
}

void RankLowering::weight(Role& role, ChunkState& chunk, int microbatch) {
  std::vector<BufferUse>& uses = uses_;
  uses.clear();
  waits_.assign({chunk.last_scatter, scatters_[0]});
  for (const std::vector<BufferId>* list : {&chunk.held, &chunk.kept}) {
    uses.push_back({(*list)[static_cast<std::size_t>(microbatch)], Use::read});
    uses.push_back({(*list)[static_cast<std::size_t>(microbatch)], Use::free});
  }
  const std::vector<Whole> wholes = whole_gradients(chunk, uses);
  chunk.last_gradient = add_compute(role, chunk, Phase::backward_weight, microbatch, waits_, uses);
  scatter(chunk, wholes, chunk.last_gradient);
}

}  // namespace polyphony::lowering
