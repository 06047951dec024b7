// One rank's roles, and the order of its compute ops. The ops themselves: rank_ops.cpp; after the
// last of them: rank_tail.cpp.
#include "shared/plan/lowering.h"

#include <algorithm>

#include "shared/error.h"
#include "shared/layers/held_sizes.h"

namespace polyphony::lowering {

void RankLowering::emit() {
  find_roles();
  if (b_.foreign() && b_.training_) add_standing();
  const std::vector<Task> list = tasks();
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i == 0) gather_for(list, 0);
    if (i + 1 < list.size()) gather_for(list, i + 1);  // one ahead of its use
    const Task& task = list[i];
    Role& role = roles_[task.role];
    ChunkState& chunk = role.chunks[task.chunk];
    freed_after_.clear();
    const auto same = [&](const Task& other) {
      return other.role == task.role && other.chunk == task.chunk;
    };
    if (gathers(chunk) && (i + 1 == list.size() || !same(list[i + 1])))
      for (const ParamGroupId params : {chunk.params, chunk.experts})
        if (params.valid()) freed_after_.push_back(gathered_.at(params));
    switch (task.turn) {
      case Turn::forward:
        forward(role, chunk, task.microbatch);
        break;
      case Turn::backward:
        backward(role, chunk, task.microbatch);
        break;
      case Turn::weight:
        weight(role, chunk, task.microbatch);
        break;
    }
  }
  if (b_.training_) tail();
}

void RankLowering::find_roles() {
  for (std::size_t branch = 0; branch < b_.plan_.branches.size(); ++branch) {
    const Branch& br = b_.plan_.branches[branch];
    const int place = static_cast<int>(rank_.value) - br.grid.first_rank;
    if (place < 0 || place >= br.grid.ranks) continue;
    const auto stage = static_cast<std::size_t>(place / (br.grid.ranks / br.grid.pp));
    for (std::size_t s = stage; s < br.stages.size(); s += static_cast<std::size_t>(br.grid.pp))
      add_role(branch, place, s);
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
  for (const Chunk& chunk : br.stages[stage].chunks) {
    ChunkState state;
    state.chunk = chunk;
    const Module& module = program_.model.modules[chunk.module.value];
    state.visited = b_.training_ && needs_backward(program_.model, chunk.module);
    state.params = add_params(role, chunk, false);
    if (module.experts > 0) state.experts = add_params(role, chunk, true);
    for (const ParamGroupId params : {state.params, state.experts})
      state.trained = state.trained || (params.valid() && program_.params[params.value].trainable);
    for (std::vector<OpId>* ops : {&state.forwards, &state.backwards}) ops->resize(microbatches);
    state.tapes.resize(microbatches);
    state.held.resize(microbatches);
    state.kept.resize(microbatches);
    state.arrived.resize(microbatches);
    state.bytes.resize(microbatches);
    role.chunks.push_back(std::move(state));
  }
  roles_.push_back(std::move(role));
}

// Links whose ends are both in one stage share a port; others have one at each end.
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
  const std::vector<Parameter> list = parameters_of(module, group);
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
                       shards, index, program_.precision);
  group.bytes = held.values;
  program_.params.push_back(group);
  if (group.trainable) {
    b_.add_buffer(rank_, BufferKind::gradient, held.gradient);
    b_.add_buffer(rank_, BufferKind::optimizer, held.optimizer);
  }
  return ParamGroupId(program_.params.size() - 1);
}

// Gradients that are never written, buffers of collectives, workspaces: with the gradients.
void RankLowering::add_standing() {
  MatrixShapes shapes;
  std::int64_t gathered = 0;
  for (const ParamGroup& group : program_.params) {
    if (group.rank != rank_ || !group.trainable) continue;
    const Module& module = program_.model.modules[group.module.value];
    const ModuleLayout& layout = program_.layout.modules[group.module.value];
    const bool heads = module.kind == ModuleKind::language &&
                       group.layers.end == static_cast<int>(layers(module).size());
    add_matrix_shapes(parameters_of(module, group), group.shard, heads, shapes);
    if (!heads || !layout.sp || layout.tp == 1) continue;
    for (std::size_t w = 0; w < program_.works.size(); ++w)
      gathered = std::max(
          gathered, program_.size_of(WorkId(w), group.module).tokens * std::int64_t{module.hidden});
  }
  const Bytes bytes = standing_bytes(b_.stack_, std::move(shapes), gathered, program_.precision);
  if (bytes > Bytes(0)) b_.add_buffer(rank_, BufferKind::gradient, bytes);
}

const RankGroups& RankLowering::groups(const Role& role) const {
  const Branch& branch = b_.plan_.branches[role.branch];
  return b_.groups_[role.branch][rank_.value - static_cast<std::size_t>(branch.grid.first_rank)];
}

// Of the first rank of the language module's branch.
int RankLowering::lead_of_language() const {
  const Branch& language = b_.plan_.branches[b_.plan_.language];
  const PipelineShape shape{language.grid.pp, language.grid.vpp, 0};
  return forward_lead(stage_order(program_.layout.schedule, shape, 0, language.microbatches));
}

int RankLowering::stages_after_language() const {
  int after = 0;
  for (std::size_t b = b_.plan_.language + 1; b < b_.plan_.branches.size(); ++b)
    after = std::max(after, b_.plan_.branches[b].grid.pp);
  return after;
}

// How many times a step the language module's pipeline runs empty: once per work item of an encoder
// that has its ranks too.
int RankLowering::flushes() const {
  const ModuleLayout& language = b_.plan_.branches[b_.plan_.language].grid;
  for (std::size_t b = 0; b < b_.plan_.language; ++b) {
    const ModuleLayout& grid = b_.plan_.branches[b].grid;
    if (grid.first_rank == language.first_rank) return b_.plan_.branches[b].microbatches;
  }
  return 1;
}

// The order of a branch that has its ranks to itself.
std::vector<Slot> RankLowering::branch_order(std::size_t index) const {
  const Branch& branch = b_.plan_.branches[index];
  const int place = static_cast<int>(rank_.value) - branch.grid.first_rank;
  const int stage = place / (branch.grid.ranks / branch.grid.pp);
  const int after = stages_after_language();
  const ScheduleKind kind = program_.layout.schedule;
  if (index < b_.plan_.language) {
    if (kind == ScheduleKind::gpipe)
      return stage_order(kind, {branch.grid.pp, 1, 0}, stage, branch.microbatches);
    return feeding_order(lead_of_language() + after, branch.grid.pp - stage, branch.microbatches);
  }
  if (index > b_.plan_.language) {
    const int groups = flushes(), each = branch.microbatches / groups;
    std::vector<Slot> order;
    for (int g = 0; g < groups; ++g)
      for (Slot slot : stage_order(kind == ScheduleKind::gpipe ? kind : ScheduleKind::one_f_one_b,
                                   {branch.grid.pp, 1, 0}, stage, each)) {
        slot.microbatch += g * each;
        order.push_back(slot);
      }
    return order;
  }
  return stage_order(kind, {branch.grid.pp, branch.grid.vpp, after}, stage, branch.microbatches);
}

std::vector<RankLowering::Step> RankLowering::order() const {
  std::vector<std::size_t> mine;  // branches, in the order of the data
  for (const Role& role : roles_)
    if (mine.empty() || mine.back() != role.branch) mine.push_back(role.branch);
  std::vector<Step> steps;
  if (mine.empty()) return steps;
  const bool shared = mine.size() > 1 && mine.back() == b_.plan_.language;
  if (!shared) {  // several encoders on the same ranks take turns
    for (Slot slot : branch_order(mine.front())) {
      std::vector<std::size_t> turn = mine;
      if (slot.turn != Turn::forward) std::reverse(turn.begin(), turn.end());
      for (const std::size_t branch : turn) steps.push_back({branch, slot});
    }
    return steps;
  }
  // Per encoder work item its forward, the language module's order of the microbatches it feeds,
  // its backward.
  const Branch& language = b_.plan_.branches[mine.back()];
  const int works = b_.plan_.branches[mine.front()].microbatches,
            fed = language.microbatches / works;
  const int place = static_cast<int>(rank_.value) - language.grid.first_rank;
  const int stage = place / (language.grid.ranks / language.grid.pp);
  const std::vector<Slot> group =
      stage_order(program_.layout.schedule,
                  {language.grid.pp, language.grid.vpp, stages_after_language()}, stage, fed);
  for (int e = 0; e < works; ++e) {
    for (std::size_t i = 0; i + 1 < mine.size(); ++i)
      steps.push_back({mine[i], {Turn::forward, e, 0}});
    for (Slot slot : group) {
      slot.microbatch += e * fed;
      steps.push_back({mine.back(), slot});
    }
    for (std::size_t i = mine.size() - 1; i-- > 0;)
      steps.push_back({mine[i], {Turn::backward, e, 0}});
  }
  return steps;
}

std::vector<Task> RankLowering::tasks() {
  std::vector<Task> list;
  const std::vector<Step> steps = order();
  for (const Step& step : steps)
    if (step.slot.turn == Turn::weight)
      for (Role& role : roles_) role.splits = role.splits || role.branch == step.branch;
  for (const Step& step : steps) {
    std::size_t r = 0;  // the branch's roles stand together, by virtual stage
    while (roles_[r].branch != step.branch) ++r;
    r += static_cast<std::size_t>(step.slot.chunk);
    const std::vector<ChunkState>& chunks = roles_[r].chunks;
    if (step.slot.turn == Turn::forward) {
      for (std::size_t c = 0; c < chunks.size(); ++c)
        list.push_back({r, c, Turn::forward, step.slot.microbatch});
      continue;
    }
    if (!b_.training_) continue;
    for (std::size_t c = chunks.size(); c-- > 0;)
      if (step.slot.turn == Turn::backward ? chunks[c].visited : chunks[c].trained)
        list.push_back({r, c, step.slot.turn, step.slot.microbatch});
  }
  return list;
}

}  // namespace polyphony::lowering
