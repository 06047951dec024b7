#include "exec/runner/chunk_set.h"

#include <algorithm>
#include <optional>

#include "exec/runner/agreed_names.h"
#include "exec/transport/announcing.h"
#include "shared/error.h"
#include "shared/program/waiting_kernels.h"

namespace polyphony::exec {
namespace {

bool ends_in_loss(const Model& model, const ParamGroup& group) {
  const Module& module = model.modules[group.module.value];
  const bool last = group.layers.end == layers(module).size();
  return last && (module.kind == ModuleKind::language || module.kind == ModuleKind::diffusion);
}

}  // namespace

torch::Dtype torch_dtype(NumberFormat format) {
  switch (format) {
    case NumberFormat::fp64:
      return torch::kFloat64;
    case NumberFormat::fp32:
      return torch::kFloat32;
    case NumberFormat::bf16:
      return torch::kBFloat16;
    case NumberFormat::tf32:
    case NumberFormat::fp16:
    case NumberFormat::fp8:
    case NumberFormat::nvfp4:
      break;
  }
  POLYPHONY_CHECK(false, name(format) << " reached the executor; check_runnable() refuses it");
}

ChunkSet::ChunkSet(Transport& transport, const Scenario& scenario, const Program& structure,
                   bool perturb, bool pretrained, torch::Device device)
    : transport_(transport), rank_(transport.rank()), device_(device) {
  make_groups(structure);
  std::optional<PretrainedModel> weights;  // closes the files when all chunks are made
  if (pretrained) {
    weights.emplace(structure.model, scenario.weights);
    weights->check();  // this rank's copy of the files: headers only
  }
  for (const ParamGroup& group : structure.params)
    if (group.rank == rank_ && !group.experts)
      add(scenario, structure, group, perturb, weights ? weights->find(group.module) : nullptr);
  for (const ParamGroup& group : structure.params)
    if (group.rank == rank_ && group.experts) {
      HeldChunk& held = at(group.module, group.layers);
      held.parameters.push_back(hold(structure, group, *held.chunk));
    }
}

void ChunkSet::make_groups(const Program& structure) {
  const std::vector<std::string> names = group_names(structure);
  groups_.resize(names.size());
  std::vector<NamedGroup> mine;
  std::vector<std::size_t> ids;
  for (std::size_t g = 0; g < names.size(); ++g) {
    const Group& group = structure.groups[g];
    if (!group.members.contains(rank_) || group.kind == GroupKind::cell) continue;
    mine.push_back({names[g], group.members, exchanges_rows(group.kind)});
    ids.push_back(g);
  }
  announce(transport_, mine);
  for (std::size_t i = 0; i < ids.size(); ++i)
    groups_[ids[i]] = transport_.make_group(mine[i].name, mine[i].members);
}

void ChunkSet::add(const Scenario& scenario, const Program& structure, const ParamGroup& group,
                   bool perturb, const PretrainedModule* pretrained) {
  const Model& model = structure.model;
  const Module& module = model.modules[group.module.value];
  const ModuleLayout& layout = structure.layout.modules[group.module.value];
  HeldChunk held;
  held.group = group;
  held.inputs = chunk_inputs(model, {group.module, group.layers});
  held.head = ends_in_loss(model, group);
  ChunkOptions options;
  options.dtype = torch_dtype(structure.precision);
  options.fp8 = scenario.training.fp8;
  options.seed = scenario.training.seed;
  options.pretrained = pretrained;
  options.trainable = module.trainable != Trainable::frozen;
  options.allocate_gradients = false;  // HeldParameters has them side by side
  options.input_grad = false;
  options.edge_grad = false;
  options.input_edges.clear();
  for (const ChunkInput& input : held.inputs) {
    options.input_grad = options.input_grad || input.gradient;
    if (input.edge < 0) continue;
    options.edge_grad = options.edge_grad || input.gradient;
    options.input_edges.push_back(input.edge);
  }
  options.sequence_parallel = layout.sp && layout.tp > 1;
  options.tp_pieces = layout.tp_pieces;
  options.attention = {layout.cp_attention,
                       layout.gathers_by_heads(module.kv_heads) ? layout.cp_heads : 0,
                       layout.row_split};
  options.expert_tp = layout.expert_tp;
  options.recompute = layout.recompute;
  options.recomputed = recomputed_layers(layout);
  options.perturb = perturb;
  options.device = device_;
  held.chunk = std::make_unique<Chunk>(
      module, group.layers,
      Communicators{find(group.tensor), find(group.context), find(group.expert), &transport_},
      group.shard, options);
  held.parameters.push_back(hold(structure, group, *held.chunk));
  places_[{group.module, group.layers}] = chunks_.size();
  chunks_.push_back(std::move(held));
}

HeldGroup ChunkSet::hold(const Program& structure, const ParamGroup& group, Chunk& chunk) {
  const ModuleLayout& layout = structure.layout.modules[group.module.value];
  std::vector<LocalParameter*> parameters;
  for (LocalParameter& parameter : chunk.parameters())
    if (parameter.spec.expert == group.experts) parameters.push_back(&parameter);
  HeldOptions options;
  options.place = group.shard;
  options.sequence_parallel = layout.sp && layout.tp > 1;
  if (group.shards.valid()) {
    options.shard = layout.shard;
    options.shards = communicator(group.shards).size();
    options.shard_index = communicator(group.shards).index();
  }
  HeldGroup held{group, std::make_unique<HeldParameters>(std::move(parameters), options), true};
  if (group.replicas.valid())
    held.counts = structure.groups[group.replicas.value].members.front() == rank_;
  return held;
}

HeldChunk& ChunkSet::at(ModuleId module, LayerRange layers) {
  return chunks_[places_.at({module, layers})];
}

HeldGroup& ChunkSet::of(const ParamGroup& group) {
  std::vector<HeldGroup>& list = at(group.module, group.layers).parameters;
  return group.experts ? list.back() : list.front();
}

}  // namespace polyphony::exec
