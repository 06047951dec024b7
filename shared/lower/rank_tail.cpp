// Collectives of parameters and gradients on one rank, the all-reduce of the step's scalars, the
// update.
#include "shared/chunk/held_sizes.h"
#include "shared/error.h"
#include "shared/lower/lowering.h"

namespace polyphony::lowering {

OpId RankLowering::add_collective(GroupId group, CollectiveKind kind, Purpose purpose,
                                  ParamGroupId params, Bytes bytes, const std::vector<OpId>& waits,
                                  const std::vector<BufferUse>& uses) {
  return add_op(stream(StreamKind::collective, "collective"), {},
                Collective{kind, group, sequences_[group]++, params, bytes, purpose}, waits, uses);
}

// This project's executor gathers a chunk and reduces its gradients as a whole; other frameworks do
// it layer by layer.
void RankLowering::add_sizes(const ParamGroup& group, const std::vector<Parameter>& list) {
  const ModuleLayout& layout = program_.layout.modules[group.module.value];
  const bool ours = !b_.of_another_stack(), pipelined = layout.pp > 1;
  const NumberFormat precision = program_.precision;
  const int size = static_cast<int>(layers(program_.model.modules[group.module.value]).size());
  const std::vector<std::int64_t> units =
      ours ? std::vector<std::int64_t>{} : unit_elements(b_.stack_, list, group.shard, size);
  ParamSizes sizes;
  if (layout.shard == Shard::full)
    sizes.gathered = ours ? size_of(precision) * group.elements
                          : stack_gathered_bytes(b_.stack_, units, pipelined, precision);
  if (layout.shard >= Shard::gradients)
    sizes.whole = ours ? gradient_size(precision) * group.trained
                       : stack_whole_gradient_bytes(b_.stack_, units, pipelined, precision);
  if (group.partials.valid())
    sizes.partial =
        gradient_size(precision) * partial_gradient_elements(list, group.shard, layout.sp);
  param_sizes_.push_back(sizes);
}

// A task that begins a run of tasks of one fully sharded chunk has the chunk's parameters gathered.
// The gather starts at the earliest when the task before the last one ends, so that the values of
// at most two chunks are resident.
void RankLowering::gather_for(const std::vector<Task>& tasks, std::size_t position) {
  const Task& task = tasks[position];
  const ChunkState& chunk = roles_[task.role].chunks[task.chunk];
  if (position > 0 && tasks[position - 1].role == task.role &&
      tasks[position - 1].chunk == task.chunk)
    return;
  for (const ParamGroupId params : gathers(chunk)) {
    const ParamGroup& group = program_.params[params.value];
    const Bytes bytes = size_of(program_.precision) * group.elements;
    const BufferId values = b_.add_buffer(rank_, BufferKind::parameter, sizes(params).gathered);
    gathered_[params] = values;
    gather_ops_[params] =
        add_collective(group.shards, CollectiveKind::all_gather, Purpose::parameters, params, bytes,
                       {last_compute_}, {{values, Use::allocate}, {values, Use::write}});
  }
}

// Sharded gradients are reduced after every backward `op`, so that the unsharded gradient is freed.
std::vector<RankLowering::Whole> RankLowering::whole_gradients(const ChunkState& chunk,
                                                               std::vector<BufferUse>& uses) {
  std::vector<Whole> wholes;
  if (program_.layout.modules[chunk.chunk.module.value].shard < Shard::gradients) return wholes;
  for (const ParamGroupId params : {chunk.params, chunk.experts}) {
    if (!params.valid()) continue;
    const ParamGroup& group = program_.params[params.value];
    if (!group.trainable || !group.shards.valid()) continue;
    wholes.push_back({params, b_.add_buffer(rank_, BufferKind::gradient, sizes(params).whole)});
    uses.push_back({wholes.back().buffer, Use::allocate});
    uses.push_back({wholes.back().buffer, Use::write});
  }
  return wholes;
}

void RankLowering::scatter(ChunkState& chunk, const std::vector<Whole>& wholes, OpId op) {
  for (const Whole& whole : wholes) {
    const ParamGroup group = program_.params[whole.params.value];
    const OpId summed = add_partial(whole.params, op, whole.buffer);
    chunk.last_scatter = add_collective(
        group.shards, CollectiveKind::reduce_scatter, Purpose::gradients, whole.params,
        gradient_size(program_.precision) * group.trained, {summed.valid() ? summed : op},
        {{whole.buffer, Use::read}, {whole.buffer, Use::free}});
  }
  if (wholes.empty()) return;
  scatters_[0] = scatters_[1];
  scatters_[1] = chunk.last_scatter;
}

// Reduces gradients that are sums over the tensor-parallel ranks (Parameter::partial). Returns an
// invalid id if there are none.
OpId RankLowering::add_partial(ParamGroupId params, OpId after, BufferId whole) {
  const ParamGroup& group = program_.params[params.value];
  if (!group.partials.valid()) return {};
  return add_collective(group.partials, CollectiveKind::all_reduce, Purpose::partial_gradients,
                        params, sizes(params).partial, {after}, {{whole, Use::read}});
}

void RankLowering::reduce(const ChunkState& chunk, ParamGroupId params, std::vector<OpId>& ends,
                          std::vector<ParamGroupId>& gathers_after) {
  const ParamGroup group = program_.params[params.value];
  if (!group.trainable) return;
  const Shard shard = program_.layout.modules[group.module.value].shard;
  const Bytes element = gradient_size(program_.precision);
  std::int64_t owned = group.trained;
  OpId last = chunk.last_gradient;
  if (shard < Shard::gradients || !group.shards.valid()) {
    if (const OpId summed = add_partial(params, last, {}); summed.valid()) last = summed;
    if (group.tied.valid()) {
      const Module& module = program_.model.modules[group.module.value];
      const std::int64_t rows =
          cut_begin(module.vocab, group.shard.tensor, group.shard.tensor_index + 1) -
          cut_begin(module.vocab, group.shard.tensor, group.shard.tensor_index);
      last = add_collective(group.tied, CollectiveKind::all_reduce, Purpose::tied_gradients, params,
                            element * (rows * module.hidden), {last});
    }
    if (group.shards.valid()) {
      last = add_collective(group.shards, CollectiveKind::reduce_scatter, Purpose::gradients,
                            params, element * group.trained, {last});
    }
  } else if (chunk.last_scatter.valid()) {
    last = chunk.last_scatter;
  }
  if (group.shards.valid()) {
    const auto [size, place] = place_in(program_, group.shards, rank_);
    owned = cut_begin(group.trained, size, place + 1) - cut_begin(group.trained, size, place);
    if (shard != Shard::full) gathers_after.push_back(params);
  }
  if (group.replicas.valid())
    last = add_collective(group.replicas, CollectiveKind::all_reduce, Purpose::gradients, params,
                          element * owned, {last});
  ends.push_back(last);
}

void RankLowering::tail() {
  std::vector<OpId> ends{last_compute_};
  std::vector<ParamGroupId> gathers_after;
  const auto first = roles_.front().chunks.front().params;
  bool trains = false;
  for (std::size_t r = roles_.size(); r-- > 0;) {
    const std::vector<ChunkState>& chunks = roles_[r].chunks;
    for (std::size_t c = chunks.size(); c-- > 0;) {
      for (const ParamGroupId params : {chunks[c].params, chunks[c].experts}) {
        if (!params.valid() || !program_.params[params.value].trainable) continue;
        trains = true;
        reduce(chunks[c], params, ends, gathers_after);
      }
    }
  }
  if (b_.world_group_.valid())  // loss sum, squared gradient norm, non-finite flag: three doubles
    ends = {add_collective(b_.world_group_, CollectiveKind::all_reduce, Purpose::scalars, {},
                           Bytes(3 * 8), ends)};
  if (!trains) return;
  const OpId update =
      add_op(stream(StreamKind::compute, "compute"), {},
             Update{{first.value, static_cast<std::uint32_t>(program_.params.size())}}, ends, {});
  for (const ParamGroupId params : gathers_after) {
    const ParamGroup& group = program_.params[params.value];
    add_collective(group.shards, CollectiveKind::all_gather, Purpose::parameters, params,
                   size_of(program_.precision) * group.trained, {update});
  }
}

}  // namespace polyphony::lowering
