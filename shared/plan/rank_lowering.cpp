// The ops of one rank, in issue order: per slot of its schedule the receive, the compute ops of the
// stage's chunks, the send; then the tail.
#include <algorithm>

#include "shared/error.h"
#include "shared/plan/lowering.h"
#include "shared/plan/sizes.h"

namespace polyphony::lowering {

void RankLowering::emit() {
  find_roles();
  for (const Step& step : order()) {
    if (step.slot.forward)
      forward(roles_[step.role], step.slot.microbatch);
    else if (b_.training_)
      backward(roles_[step.role], step.slot.microbatch);
  }
  if (b_.training_) tail();
}

void RankLowering::find_roles() {
  for (std::size_t branch = 0; branch < b_.plan_.branches.size(); ++branch) {
    const Branch& br = b_.plan_.branches[branch];
    const int offset = static_cast<int>(rank_.value) - br.grid.first_rank;
    if (offset < 0 || offset >= br.grid.ranks) continue;
    Role role;
    role.branch = branch;
    role.tensor = offset % br.grid.tp;
    role.lane = offset / br.grid.tp % br.grid.dp();
    role.stage = static_cast<std::size_t>(offset / br.grid.tp / br.grid.dp());
    for (const Crossing& crossing : b_.crossings_) {
      const Boundary& boundary = crossing.boundary;
      if (boundary.consumer_branch == branch && boundary.consumer_stage == role.stage)
        role.before = &crossing;
      if (boundary.producer_branch == branch && boundary.producer_stage == role.stage)
        role.after = &crossing;
    }
    const auto microbatches = static_cast<std::size_t>(br.microbatches);
    role.forwards.resize(microbatches);
    role.backwards.resize(microbatches);
    role.tapes.resize(microbatches);
    add_params(role);
    roles_.push_back(std::move(role));
  }
}

void RankLowering::add_params(Role& role) {
  const Branch& branch = b_.plan_.branches[role.branch];
  const std::vector<Chunk>& chunks = branch.stages[role.stage].chunks;
  const auto tp = static_cast<std::size_t>(branch.grid.tp);
  role.last_backward.resize(chunks.size());
  for (const Chunk& chunk : chunks) {
    const Module& module = program_.model.modules[chunk.module.value];
    const ModuleLayout& layout = program_.layout.modules[chunk.module.value];
    const std::int64_t local = local_parameters(module, chunk.layers, {.tensor = branch.grid.tp, .tensor_index = role.tensor});
    const GroupId replicas =
        b_.data_groups_[role.branch][role.stage * tp + static_cast<std::size_t>(role.tensor)];
    const bool trainable = b_.training_ && module.trainable != Trainable::frozen;
    role.params.emplace_back(program_.params.size());
    program_.params.push_back({rank_, chunk.module, chunk.layers, replicas, trainable,
                               size_of(program_.precision) * local});
    if (!trainable) continue;
    const TrainingBytes bytes =
        training_bytes(local, branch.grid.dp(), layout.shard, program_.precision);
    b_.add_buffer(rank_, BufferKind::gradient, 0, 0, bytes.gradient);
    b_.add_buffer(rank_, BufferKind::optimizer, 0, 0, bytes.optimizer);
  }
}

std::vector<RankLowering::Step> RankLowering::order() const {
  const std::vector<Branch>& branches = b_.plan_.branches;
  const ScheduleKind schedule = program_.layout.schedule;
  std::vector<Step> steps;
  if (program_.layout.placement == Placement::colocated && branches.size() == 2) {
    // roles_[0] is the encoder, roles_[1] the language module.
    const int groups = branches[0].microbatches, fed = branches[1].microbatches / groups;
    const auto stages = static_cast<int>(branches[1].stages.size());
    for (int e = 0; e < groups; ++e) {
      steps.push_back({0, {true, e}});
      for (Slot slot : stage_order(schedule, stages, static_cast<int>(roles_[1].stage), fed)) {
        slot.microbatch += e * fed;
        steps.push_back({1, slot});
      }
      steps.push_back({0, {false, e}});
    }
    return steps;
  }
  int stages = 0, before = 0;
  for (std::size_t branch = 0; branch < branches.size(); ++branch) {
    if (branch < roles_[0].branch) before += static_cast<int>(branches[branch].stages.size());
    stages += static_cast<int>(branches[branch].stages.size());
  }
  const int stage = before + static_cast<int>(roles_[0].stage);
  for (const Slot& slot :
       stage_order(schedule, stages, stage, branches[roles_[0].branch].microbatches))
    steps.push_back({0, slot});
  return steps;
}

std::uint32_t RankLowering::branch_work(const Role& role, int microbatch) const {
  return static_cast<std::uint32_t>(microbatch * b_.plan_.branches[role.branch].grid.dp() +
                                    role.lane);
}

StreamId RankLowering::stream(StreamKind kind, const std::string& name) {
  const auto [entry, fresh] = streams_.try_emplace(name, StreamId(program_.streams.size()));
  if (fresh) program_.streams.push_back({rank_, kind, name});
  return entry->second;
}

OpId RankLowering::add_op(StreamId stream, GroupId group, decltype(Op::what) what,
                          const std::vector<OpId>& waits, const std::vector<BufferUse>& uses) {
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

OpId RankLowering::add_exchange(const Crossing& crossing, bool backward, bool sends,
                                const std::vector<MessageId>& messages,
                                const std::vector<OpId>& waits, BufferId buffer) {
  if (messages.empty()) return {};
  const Boundary& boundary = crossing.boundary;
  const auto stage_name = [&](std::size_t branch, std::size_t stage) {
    const Stage& s = b_.plan_.branches[branch].stages[stage];
    return program_.model.modules[s.chunks.back().module.value].name + "." + std::to_string(stage);
  };
  const std::string name = stage_name(boundary.producer_branch, boundary.producer_stage) +
                           (backward ? "<" : ">") +
                           stage_name(boundary.consumer_branch, boundary.consumer_stage) +
                           (sends ? " send" : " receive");
  Exchange exchange{sends, {static_cast<std::uint32_t>(program_.exchange_messages.size()), 0}};
  program_.exchange_messages.insert(program_.exchange_messages.end(), messages.begin(),
                                    messages.end());
  exchange.messages.end = static_cast<std::uint32_t>(program_.exchange_messages.size());
  const std::vector<BufferUse> uses =
      sends ? std::vector<BufferUse>{{buffer, Use::read}, {buffer, Use::free}}
            : std::vector<BufferUse>{{buffer, Use::allocate}, {buffer, Use::write}};
  return add_op(stream(sends ? StreamKind::send : StreamKind::receive, name), {}, exchange, waits,
                uses);
}

void RankLowering::forward(Role& role, int microbatch) {
  const Branch& branch = b_.plan_.branches[role.branch];
  const std::vector<Chunk>& chunks = branch.stages[role.stage].chunks;
  const auto m = static_cast<std::size_t>(microbatch);
  const std::uint32_t local = branch_work(role, microbatch);
  const WorkId work(b_.first_work_[role.branch] + local);
  const auto t = static_cast<std::size_t>(role.tensor);
  BufferId input;
  OpId received;
  if (role.before) {
    const Side& side = role.before->forward_destination;
    input = side.buffers[local * side.tp + t];
    const OpId slot = m >= kReceiveSlots ? role.forwards[m - kReceiveSlots] : OpId{};
    received =
        add_exchange(*role.before, false, false, side.messages[local * side.tp + t], {slot}, input);
  }
  role.tapes[m].resize(chunks.size());
  const GroupId tensor_group =
      b_.tensor_groups_[role.branch][role.stage * static_cast<std::size_t>(branch.grid.dp()) +
                                     static_cast<std::size_t>(role.lane)];
  for (std::size_t c = 0; c < chunks.size(); ++c) {
    const Chunk& chunk = chunks[c];
    const Module& module = program_.model.modules[chunk.module.value];
    std::vector<BufferUse> uses{{input, Use::read}, {input, Use::free}};
    if (b_.training_ && needs_backward(program_.model, chunk.module)) {
      const Bytes bytes =
          tape_bytes(module, chunk.layers, program_.size_of(work, chunk.module),
                     chunk_context(program_, {chunk.module, chunk.layers, Phase::forward, work}));
      role.tapes[m][c] = b_.add_buffer(rank_, BufferKind::tape, 0, 0, bytes);
      uses.push_back({role.tapes[m][c], Use::allocate});
      uses.push_back({role.tapes[m][c], Use::write});
    }
    BufferId output;
    bool sent = false;
    if (c + 1 < chunks.size()) {
      output = b_.add_boundary_buffer(rank_, BufferKind::boundary,
                                      program_.size_of(work, chunk.module).tokens, chunk.module);
    } else if (role.after) {
      const Side& side = role.after->forward_source;
      output = side.buffers[local * side.tp + t];
      sent = !side.messages[local * side.tp + t].empty();
    }
    uses.push_back({output, Use::allocate});
    uses.push_back({output, Use::write});
    if (c + 1 == chunks.size() && !sent)
      uses.push_back({output, Use::free});  // another replica sends
    last_compute_ =
        add_op(stream(StreamKind::compute, "compute"), tensor_group,
               Compute{chunk.module, chunk.layers, Phase::forward, work}, {received}, uses);
    if (c == 0) role.forwards[m] = last_compute_;
    received = {};
    input = output;
  }
  if (role.after) {
    const Side& side = role.after->forward_source;
    add_exchange(*role.after, false, true, side.messages[local * side.tp + t], {last_compute_},
                 input);
  }
}

void RankLowering::backward(Role& role, int microbatch) {
  const Branch& branch = b_.plan_.branches[role.branch];
  const std::vector<Chunk>& chunks = branch.stages[role.stage].chunks;
  const auto m = static_cast<std::size_t>(microbatch);
  const std::uint32_t local = branch_work(role, microbatch);
  const WorkId work(b_.first_work_[role.branch] + local);
  const auto t = static_cast<std::size_t>(role.tensor);
  if (!needs_backward(program_.model, chunks.back().module)) return;
  BufferId gradient;
  OpId received;
  if (role.after) {
    const Side& side = role.after->backward_destination;
    gradient = side.buffers[local * side.tp + t];
    const OpId slot = m >= kReceiveSlots ? role.backwards[m - kReceiveSlots] : OpId{};
    received = add_exchange(*role.after, true, false, side.messages[local * side.tp + t], {slot},
                            gradient);
  }
  const GroupId tensor_group =
      b_.tensor_groups_[role.branch][role.stage * static_cast<std::size_t>(branch.grid.dp()) +
                                     static_cast<std::size_t>(role.lane)];
  const StreamId compute = stream(StreamKind::compute, "compute");
  for (std::size_t c = chunks.size(); c-- > 0;) {
    const Chunk& chunk = chunks[c];
    if (!needs_backward(program_.model, chunk.module)) break;
    const Module& module = program_.model.modules[chunk.module.value];
    const BufferId tape = role.tapes[m][c];
    BufferId rebuilt;
    if (program_.layout.modules[chunk.module.value].recompute == Recompute::full) {
      ChunkContext kept =
          chunk_context(program_, {chunk.module, chunk.layers, Phase::forward, work});
      kept.recompute = Recompute::none;
      rebuilt = b_.add_buffer(rank_, BufferKind::workspace, 0, 0,
                              tape_bytes(module, chunk.layers, program_.size_of(work, chunk.module),
                                         kept));
      last_compute_ =
          add_op(compute, tensor_group, Compute{chunk.module, chunk.layers, Phase::recompute, work},
                 {received}, {{tape, Use::read}, {rebuilt, Use::allocate}, {rebuilt, Use::write}});
      if (c + 1 == chunks.size()) role.backwards[m] = last_compute_;
    }
    std::vector<BufferUse> uses{{gradient, Use::read}, {gradient, Use::free}, {rebuilt, Use::read},
                                {rebuilt, Use::free},  {tape, Use::read},     {tape, Use::free}};
    BufferId input_gradient;
    bool sent = false;
    if (input_grad_wanted(program_.model, chunk)) {
      if (c > 0) {
        const ModuleId before = chunks[c - 1].module;
        input_gradient = b_.add_boundary_buffer(rank_, BufferKind::boundary_gradient,
                                                program_.size_of(work, before).tokens, before);
      } else if (role.before) {
        const Side& side = role.before->backward_source;
        input_gradient = side.buffers[local * side.tp + t];
        sent = !side.messages[local * side.tp + t].empty();
      }
      uses.push_back({input_gradient, Use::allocate});
      uses.push_back({input_gradient, Use::write});
      if (c == 0 && !sent) uses.push_back({input_gradient, Use::free});
    }
    last_compute_ =
        add_op(compute, tensor_group, Compute{chunk.module, chunk.layers, Phase::backward, work},
               {received}, uses);
    if (c + 1 == chunks.size() && !role.backwards[m].valid()) role.backwards[m] = last_compute_;
    role.last_backward[c] = last_compute_;
    received = {};
    gradient = input_gradient;
    if (c == 0 && role.before && role.before->boundary.backward) {
      const Side& side = role.before->backward_source;
      add_exchange(*role.before, true, true, side.messages[local * side.tp + t], {last_compute_},
                   gradient);
    }
  }
}

OpId RankLowering::add_collective(GroupId group, CollectiveKind kind, ParamGroupId params,
                                  Bytes bytes, const std::vector<OpId>& waits) {
  return add_op(stream(StreamKind::collective, "collective"), {},
                Collective{kind, group, sequences_[group]++, params, bytes}, waits, {});
}

void RankLowering::tail() {
  std::vector<OpId> reductions{last_compute_};
  std::vector<ParamGroupId> gathers;
  const auto first = roles_.front().params.front();
  bool trains = false;
  for (std::size_t r = roles_.size(); r-- > 0;) {
    const Role& role = roles_[r];
    for (std::size_t c = role.params.size(); c-- > 0;) {
      const ParamGroup& group = program_.params[role.params[c].value];
      if (!group.trainable) continue;
      trains = true;
      if (!group.replicas.valid()) continue;
      const ModuleLayout& layout = program_.layout.modules[group.module.value];
      const Bytes element = size_of(program_.precision);
      const Bytes bytes =
          training_bytes(group.bytes.value / element.value, 1, Shard::none, program_.precision)
              .gradient;
      const bool sharded = layout.shard == Shard::optimizer;
      if (sharded) gathers.push_back(role.params[c]);
      reductions.push_back(add_collective(
          group.replicas, sharded ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
          role.params[c], bytes, {role.last_backward[c]}));
    }
  }
  std::vector<OpId> ready = reductions;
  if (b_.world_group_.valid())  // loss sum, squared gradient norm, non-finite flag: three doubles
    ready = {
        add_collective(b_.world_group_, CollectiveKind::all_reduce, {}, Bytes(3 * 8), reductions)};
  if (!trains) return;
  const OpId update =
      add_op(stream(StreamKind::compute, "compute"), {},
             Update{{first.value, static_cast<std::uint32_t>(program_.params.size())}}, ready, {});
  for (const ParamGroupId params : gathers) {
    const ParamGroup& group = program_.params[params.value];
    add_collective(group.replicas, CollectiveKind::all_gather, params, group.bytes, {update});
  }
}

}  // namespace polyphony::lowering
