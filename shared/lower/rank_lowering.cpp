// One rank's roles, the memory of their chunks, and the order of its compute ops. The ops
// themselves are made in rank_ops.cpp, copies to the host in rank_copies.cpp, and the tail of the
// step in rank_tail.cpp.
#include "shared/lower/lowering.h"

#include <algorithm>

#include "shared/chunk/held_sizes.h"
#include "shared/error.h"

namespace polyphony::lowering {

void RankLowering::emit() {
  find_roles();
  if (b_.of_another_stack() && b_.training_) add_standing();
  const std::vector<Task> list = tasks();
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i == 0) gather_for(list, 0);
    if (i + 1 < list.size()) gather_for(list, i + 1);  // one ahead of its use
    const Task& task = list[i];
    if (task.order != action_) begin_action(task);
    Role& role = roles_[task.role];
    ChunkState& chunk = role.chunks[task.chunk];
    freed_after_.clear();
    const auto same = [&](const Task& other) {
      return other.role == task.role && other.chunk == task.chunk;
    };
    if (i + 1 == list.size() || !same(list[i + 1]))
      for (const ParamGroupId params : gathers(chunk)) freed_after_.push_back(gathered_.at(params));
    switch (task.action) {
      case ActionKind::forward:
        forward(role, chunk, task.microbatch, task.after_sent);
        break;
      case ActionKind::backward:
      case ActionKind::backward_input:
        backward(role, chunk, task.microbatch);
        break;
      case ActionKind::backward_weight:
        weight(role, chunk, task.microbatch);
        break;
    }
  }
  if (b_.training_) tail();
}

void RankLowering::find_roles() {
  for (std::size_t branch = 0; branch < b_.plan_.branches.size(); ++branch) {
    const Branch& br = b_.plan_.branches[branch];
    for (std::size_t s = 0; s < br.stages.size(); ++s)
      if (br.holds(rank_, s)) add_role(branch, br.place_of(rank_), s);
  }
  for (Role& role : roles_) join_ports(role);
}

void RankLowering::add_role(std::size_t branch, int place, std::size_t stage) {
  const Branch& br = b_.plan_.branches[branch];
  Role role;
  role.branch = branch;
  role.stage = stage;
  role.tensor = place % br.grid.tp;
  role.context = place / br.grid.tp % br.grid.cp;
  role.lane = place / (br.grid.tp * br.grid.cp) % br.grid.dp();
  const auto microbatches = static_cast<std::size_t>(br.microbatches);
  role.splits.resize(microbatches);
  role.recipes.resize(microbatches);
  for (const Chunk& chunk : br.stages[stage].chunks) {
    ChunkState state;
    state.chunk = chunk;
    state.visited = b_.training_ && needs_backward(program_.model, chunk.module);
    state.params = add_params(role, chunk, false);
    if (!b_.parameters_of(chunk, true).empty()) state.experts = add_params(role, chunk, true);
    for (const ParamGroupId params : {state.params, state.experts})
      state.trained = state.trained || (params.valid() && program_.params[params.value].trainable);
    state.tapes.resize(microbatches);
    state.held.resize(microbatches);
    state.kept.resize(microbatches);
    state.away.resize(microbatches);
    state.offloads.resize(microbatches);
    state.fetches.resize(microbatches);
    state.moves.resize(microbatches);
    state.arrived.resize(microbatches);
    state.bytes.resize(microbatches);
    role.chunks.push_back(std::move(state));
  }
  roles_.push_back(std::move(role));
}

// A link with both ends in one stage has one port; other links have one port at each end.
void RankLowering::join_ports(Role& role) {
  const auto microbatches = static_cast<std::size_t>(b_.plan_.branches[role.branch].microbatches);
  for (std::size_t i = 0; i < b_.links_.size(); ++i) {
    const ChunkLink& link = b_.links_[i];
    const auto here = [&](const ChunkPlace& place) {
      return place.branch == role.branch && place.stage == role.stage;
    };
    const bool makes = here(link.producer), uses = here(link.consumer);
    if (!makes && !uses) continue;
    const bool local = b_.crossing_of_[i] < 0;
    const auto add = [&] {
      ports_.push_back(std::make_unique<Port>());
      Port& port = *ports_.back();
      port.link = &link;
      if (!local) port.crossing = &b_.crossings_[static_cast<std::size_t>(b_.crossing_of_[i])];
      port.forwards.resize(microbatches);
      port.backwards.resize(microbatches);
      port.sent.resize(microbatches);
      return &port;
    };
    Port* port = add();
    if (makes) role.chunks[link.producer.chunk].outputs.push_back(port);
    if (makes && uses && !local) port = add();
    if (uses) role.chunks[link.consumer.chunk].inputs.push_back(port);
  }
}

ParamGroupId RankLowering::add_params(const Role& role, const Chunk& chunk, bool experts) {
  const Module& module = program_.model.modules[chunk.module.value];
  const ModuleLayout& layout = program_.layout.modules[chunk.module.value];
  const RankGroups& mine = groups(role);
  ParamGroup group;
  group.rank = rank_;
  group.module = chunk.module;
  group.layers = chunk.layers;
  group.experts = experts;
  const int width = layout.tp * layout.cp;
  group.shard = {.tensor = layout.tp, .tensor_index = role.tensor};
  const int place = role.tensor + layout.tp * role.context + width * role.lane;
  const bool spread = layout.experts_tp() == 1;
  group.shard.expert = layout.ep;
  group.shard.expert_index = (spread ? place : place / layout.tp) % layout.ep;
  if (experts && spread) group.shard.tensor = 1, group.shard.tensor_index = 0;
  group.tensor = mine.tensor;
  group.context = mine.context;
  if (module.experts > 0) group.expert = mine.expert;
  group.shards = experts ? mine.expert_shards : mine.shards;
  group.replicas = experts ? mine.expert_replicas : mine.replicas;
  const bool embeds = chunk.layers.begin == 0,
             heads = chunk.layers.end == static_cast<int>(layers(module).size());
  const std::vector<Parameter>& list = b_.parameters_of(chunk, experts);
  if ((embeds || heads) && std::any_of(list.begin(), list.end(), [](const Parameter& parameter) {
        return parameter.tied && parameter.trained;
      }))
    group.tied = mine.tied;
  const HeldElements local = held_elements(list, group.shard);
  group.elements = local.trained + local.frozen;
  group.trained = b_.training_ ? local.trained : 0;
  group.trainable = group.trained > 0;
  if (group.trainable && partial_gradient_elements(list, group.shard, layout.sp) > 0)
    group.partials = mine.partials;
  const auto [shards, index] = place_in(program_, group.shards, rank_);
  const HeldBytes held =
      stack_held_bytes(b_.stack_, {group.trained, group.elements - group.trained}, layout.shard,
                       shards, index, layout.pp > 1, program_.precision);
  group.bytes = held.values;
  program_.params.push_back(group);
  add_sizes(group, list);
  if (group.trainable) {
    b_.add_buffer(rank_, BufferKind::gradient, held.gradient);
    b_.add_buffer(rank_, BufferKind::optimizer, held.optimizer);
  }
  return ParamGroupId(program_.params.size() - 1);
}

// Adds dummy gradients that are never written, buffers of collectives and workspaces; they count as
// gradients.
void RankLowering::add_standing() {
  Standing standing;
  for (std::size_t p = first_params_; p < program_.params.size(); ++p) {
    const ParamGroup& group = program_.params[p];
    const Module& module = program_.model.modules[group.module.value];
    const ModuleLayout& layout = program_.layout.modules[group.module.value];
    const int size = static_cast<int>(layers(module).size());
    const bool heads = module.kind == ModuleKind::language && group.layers.end == size;
    const std::vector<Parameter>& list =
        b_.parameters_of({group.module, group.layers}, group.experts);
    if (layout.shard == Shard::full && group.shards.valid()) {
      std::int64_t ends = group.elements;
      for (const std::int64_t unit : unit_elements(b_.stack_, list, group.shard, size))
        ends -= unit;
      standing.ends += end_copies(b_.stack_, ends, layout.pp > 1);
    }
    if (!group.trainable) continue;
    add_matrix_shapes(list, group.shard, heads, standing.shapes);
    if (!heads || !layout.sp || layout.tp == 1) continue;
    standing.rows =
        std::max(standing.rows, b_.most_tokens(group.module) * std::int64_t{module.hidden});
  }
  const Bytes bytes = standing_bytes(b_.stack_, std::move(standing), program_.precision);
  if (bytes > Bytes(0)) b_.add_buffer(rank_, BufferKind::gradient, bytes);
}

const RankGroups& RankLowering::groups(const Role& role) const {
  const Branch& branch = b_.plan_.branches[role.branch];
  const auto place = static_cast<std::size_t>(b_.step_.only.valid() ? 0 : branch.place_of(rank_));
  return b_.groups_[role.branch][place];
}

// Computing the sizes of a chunk takes longer than everything else that an op needs. It is done
// once per microbatch, and skipped if the work is as large as the last one computed.
const ChunkBytes& RankLowering::bytes(const Role& role, ChunkState& chunk, int microbatch) {
  const auto m = static_cast<std::size_t>(microbatch);
  const WorkId work = work_id(role, microbatch);
  const WorkSize& size = program_.size_of(work, chunk.chunk.module);
  ChunkBytes& result = chunk.bytes[m];
  if (result.of) return result;
  const bool splits = role.splits[m] && chunk.trained;
  const Recipe recipe = role.recipes[m];
  if (const ChunkBytes& last = chunk.bytes[chunk.sized];
      last.of == size && last.splits == splits && last.recipe == recipe)
    return result = last;
  result = measure(role, chunk, work, splits, recipe);
  chunk.sized = m;
  return result;
}

ChunkBytes RankLowering::measure(const Role& role, const ChunkState& chunk, WorkId work,
                                 bool splits, Recipe recipe) const {
  const WorkSize& size = program_.size_of(work, chunk.chunk.module);
  const Module& module = program_.model.modules[chunk.chunk.module.value];
  const LayerRange range = chunk.chunk.layers;
  const RankContext inside = context(role, chunk, work, recipe);
  const Bytes input = input_in_tape(module, range, size, inside);
  ChunkBytes result;
  result.of = size;
  result.splits = splits;
  result.recipe = recipe;
  if (b_.of_another_stack()) {
    const ChunkHeld held = chunk_held(b_.stack_, module, range, size, inside);
    result.tape = std::max(Bytes(0), held.tape - input);
    // In addition to the unsharded gradients, which do not exist yet at the loss.
    Bytes whole{};
    if (!splits && program_.layout.modules[chunk.chunk.module.value].shard >= Shard::gradients)
      for (const ParamGroupId params : {chunk.params, chunk.experts})
        if (params.valid() && program_.params[params.value].trainable &&
            program_.params[params.value].shards.valid())
          whole += sizes(params).whole;
    result.workspace = std::max(held.backward, held.loss - whole);
    result.forward = held.forward;
  } else {
    result.tape = tape_bytes(module, range, size, inside) - input;
    result.workspace = workspace_bytes(module, range, size, inside);
  }
  if (splits) {
    const Bytes held = held_for_weights(module, range, size, inside);
    result.kept = std::min(result.tape, held);
    result.tape -= result.kept;
    result.held = held - result.kept;
    result.workspace = std::max(result.workspace, made_for_weights(module, range, size, inside));
  }
  return result;
}

// If nothing has a backward, the output of a stage for a microbatch must have left the stage by the
// position of the (absent) backward action. This bounds how far ahead such a stage runs, and how
// much it holds for stages that have not taken it yet.
std::vector<Task> RankLowering::tasks() {
  std::vector<Task> list;
  std::vector<int> last_sent(roles_.size(), -1);  // by role
  const auto none_visited = [](const Role& role) {
    return std::none_of(role.chunks.begin(), role.chunks.end(),
                        [](const ChunkState& chunk) { return chunk.visited; });
  };
  const auto role_of = [&](const Action& action) {
    std::size_t r = 0;
    while (roles_[r].branch != action.branch || roles_[r].stage != action.stage) ++r;
    return r;
  };
  int order = 0;
  for (const Action& action : b_.step_.actions(rank_)) {
    const std::size_t r = role_of(action);
    Role& role = roles_[r];
    const int microbatch = action.work;
    if (action.kind == ActionKind::forward) {
      role.recipes[static_cast<std::size_t>(action.work)] = action.recipe;
      for (std::size_t c = 0; c < role.chunks.size(); ++c)
        list.push_back({r, c, ActionKind::forward, microbatch, order, c == 0 ? last_sent[r] : -1});
      made_[{r, microbatch}] = order++;
      continue;
    }
    if (!b_.training_) continue;
    if (action.kind == ActionKind::backward_input) role.splits[action.work] = true;
    const std::size_t before = list.size();
    for (std::size_t c = role.chunks.size(); c-- > 0;)
      if (returns_gradient(action) ? role.chunks[c].visited : role.chunks[c].trained)
        list.push_back({r, c, action.kind, microbatch, order});
    if (returns_gradient(action)) find_moves(r, microbatch, order);
    if (list.size() > before) ++order;
    if (returns_gradient(action) && none_visited(role)) last_sent[r] = microbatch;
  }
  return list;
}

}  // namespace polyphony::lowering
