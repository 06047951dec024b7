// The groups of ranks of one branch (shared/model/layout.h says how ranks are numbered).
#include <algorithm>

#include "shared/error.h"
#include "shared/layers/held_sizes.h"
#include "shared/plan/lowering.h"

namespace polyphony::lowering {

PlaceInGroup place_in(const Program& program, GroupId group, Rank rank) {
  if (!group.valid()) return {};
  const std::vector<Rank>& members = program.groups[group.value].members;
  const auto found = std::lower_bound(members.begin(), members.end(), rank);  // made in rank order
  POLYPHONY_CHECK(found != members.end() && *found == rank,
                  "rank " << rank.value << " is not in group " << group.value);
  return {static_cast<int>(members.size()), static_cast<int>(found - members.begin())};
}

GroupId Builder::add_group(GroupKind kind, std::vector<Rank> members) {
  if (members.size() < 2) return {};
  program_.groups.push_back({kind, std::move(members)});
  return GroupId(program_.groups.size() - 1);
}

void Builder::make_groups(const Branch& branch) {
  std::vector<RankGroups> groups(static_cast<std::size_t>(branch.grid.ranks));
  const bool partials = partial_sums(branch);
  for (int p = 0; p < branch.grid.pp; ++p) make_stage_groups(branch, p, partials, groups);
  make_tied_groups(branch, groups);
  groups_.push_back(std::move(groups));
}

// Whether some trained parameter's gradients are partial sums over the tensor-parallel ranks.
bool Builder::partial_sums(const Branch& branch) const {
  for (const Stage& stage : branch.stages)
    for (const Chunk& chunk : stage.chunks)
      if (partial_gradient_elements(
              parameters(program_.model.modules[chunk.module.value], chunk.layers),
              {.tensor = branch.grid.tp}, program_.layout.modules[chunk.module.value].sp) > 0)
        return true;
  return false;
}

void Builder::make_stage_groups(const Branch& branch, int stage, bool partials,
                                std::vector<RankGroups>& groups) {
  const ModuleLayout& grid = branch.grid;
  const int width = grid.tp * grid.cp * grid.dp(), base = width * stage;
  const auto rank = [&](int place) {
    return Rank(static_cast<std::size_t>(grid.first_rank + base + place));
  };
  const auto at = [&](int place) -> RankGroups& {
    return groups[static_cast<std::size_t>(base + place)];
  };
  // Groups of `size` members, `stride` apart, inside blocks of size·stride consecutive places.
  const auto make = [&](GroupKind kind, int size, int stride, GroupId RankGroups::* field) {
    for (int block = 0; block < width; block += size * stride)
      for (int offset = 0; offset < stride; ++offset) {
        std::vector<Rank> members;
        for (int i = 0; i < size; ++i) members.push_back(rank(block + offset + i * stride));
        const GroupId group = add_group(kind, std::move(members));
        for (int i = 0; i < size; ++i) at(block + offset + i * stride).*field = group;
      }
  };
  make(GroupKind::tensor, grid.tp, 1, &RankGroups::tensor);
  make(GroupKind::context, grid.cp, grid.tp, &RankGroups::context);
  if (partials) make(GroupKind::tensor, grid.tp, 1, &RankGroups::partials);
  const bool spread = grid.experts_tp() == 1;  // an expert group spans tensor-parallel ranks
  make(GroupKind::expert, grid.ep, spread ? 1 : grid.tp, &RankGroups::expert);

  const int cell = cell_ranks(grid), with_experts = spread ? grid.ep : grid.ep * grid.tp;
  for (int block = 0; block < width; block += cell) {
    std::vector<Rank> members;
    for (int i = 0; i < cell; ++i) members.push_back(rank(block + i));
    // A cell that is one of its own groups needs no other name.
    const RankGroups& first = at(block);
    GroupId same;
    for (const GroupId group : {first.tensor, first.context, first.expert})
      if (group.valid() && program_.groups[group.value].members == members) same = group;
    const GroupId group = same.valid() ? same : add_group(GroupKind::cell, std::move(members));
    for (int i = 0; i < cell; ++i) at(block + i).cell = group;
  }

  for (int t = 0; t < grid.tp; ++t) {
    std::vector<Rank> copies;
    for (int place = t; place < width; place += grid.tp) copies.push_back(rank(place));
    divide(copies, grid.shard, grid.shard_ranks, grid.first_rank, groups, &RankGroups::shards,
           &RankGroups::replicas);
  }
  const bool own_copies = grid.ep > 1 || (spread && grid.tp > 1);
  for (int e = 0; e < with_experts && own_copies; ++e) {
    std::vector<Rank> copies;
    for (int place = e; place < width; place += with_experts) copies.push_back(rank(place));
    divide(copies, grid.shard, grid.shard_ranks, grid.first_rank, groups,
           &RankGroups::expert_shards, &RankGroups::expert_replicas);
  }
  if (!own_copies)
    for (int place = 0; place < width; ++place) {
      at(place).expert_shards = at(place).shards;
      at(place).expert_replicas = at(place).replicas;
    }
}

void Builder::divide(const std::vector<Rank>& copies, Shard shard, int shard_ranks, int first_rank,
                     std::vector<RankGroups>& groups, GroupId RankGroups::* shards,
                     GroupId RankGroups::* replicas) {
  const std::size_t count = copies.size();
  std::size_t size = shard == Shard::none ? 1 : count;
  if (shard != Shard::none && shard_ranks > 0)
    size = std::min<std::size_t>(count, static_cast<std::size_t>(shard_ranks));
  const auto of = [&](std::size_t i) -> RankGroups& {
    return groups[copies[i].value - static_cast<std::size_t>(first_rank)];
  };
  for (std::size_t begin = 0; begin < count; begin += size) {
    const GroupId group =
        add_group(GroupKind::data, {copies.begin() + static_cast<std::ptrdiff_t>(begin),
                                    copies.begin() + static_cast<std::ptrdiff_t>(begin + size)});
    for (std::size_t i = 0; i < size; ++i) of(begin + i).*shards = group;
  }
  for (std::size_t offset = 0; offset < size; ++offset) {
    std::vector<Rank> members;
    for (std::size_t i = offset; i < count; i += size) members.push_back(copies[i]);
    const GroupId group = add_group(GroupKind::data, std::move(members));
    for (std::size_t i = offset; i < count; i += size) of(i).*replicas = group;
  }
}

// The embedding on the first stage and its copy in the head on the last.
void Builder::make_tied_groups(const Branch& branch, std::vector<RankGroups>& groups) {
  const ModuleLayout& grid = branch.grid;
  ChunkPlace first, last;
  bool tied = false;
  for (std::size_t s = 0; s < branch.stages.size(); ++s)
    for (std::size_t c = 0; c < branch.stages[s].chunks.size(); ++c) {
      const Chunk& chunk = branch.stages[s].chunks[c];
      const Module& module = program_.model.modules[chunk.module.value];
      if (!module.tied) continue;
      tied = true;
      if (chunk.layers.begin == 0) first = {0, s, c};
      if (chunk.layers.end == static_cast<int>(layers(module).size())) last = {0, s, c};
    }
  const int a = branch.rank_of_stage[first.stage], b = branch.rank_of_stage[last.stage];
  if (!tied || a == b) return;
  const int width = grid.tp * grid.cp * grid.dp();
  for (int place = 0; place < width; ++place) {
    const auto rank = [&](int stage) {
      return Rank(static_cast<std::size_t>(grid.first_rank + width * stage + place));
    };
    const GroupId group = add_group(GroupKind::data, {rank(a), rank(b)});
    for (const int stage : {a, b})
      groups[static_cast<std::size_t>(width * stage + place)].tied = group;
  }
}

}  // namespace polyphony::lowering
