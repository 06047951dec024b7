// The groups of ranks of one branch (shared/model/layout.h defines how ranks are numbered).
#include <optional>
#include <utility>

#include "shared/chunk/held_sizes.h"
#include "shared/error.h"
#include "shared/lower/lowering.h"

namespace polyphony::lowering {

PlaceInGroup place_in(const Program& program, GroupId group, Rank rank) {
  if (!group.valid()) return {};
  const RankList& members = program.groups[group.value].members;
  const auto found = members.find(rank);
  POLYPHONY_CHECK(found, "rank " << rank.value << " is not in group " << group.value);
  return {static_cast<int>(members.size()), static_cast<int>(*found)};
}

GroupId Builder::add_group(GroupKind kind, RankList members) {
  if (members.size() < 2) return {};
  program_.groups.push_back({kind, std::move(members)});
  return GroupId(program_.groups.size() - 1);
}

// Returns whether the gradients of some trained parameter are partial sums over tensor-parallel
// ranks.
bool Builder::partial_sums(const Branch& branch) {
  for (const Stage& stage : branch.stages)
    for (const Chunk& chunk : stage.chunks)
      for (const bool experts : {false, true})
        if (partial_gradient_elements(parameters_of(chunk, experts), {.tensor = branch.grid.tp},
                                      program_.layout.modules[chunk.module.value].sp) > 0)
          return true;
  return false;
}

// Makes the groups of one pipeline stage: those of all its ranks, or those that one rank belongs
// to.
class StageGroups {
 public:
  // `groups`: by place in the branch's grid; for one rank alone, its own.
  StageGroups(Builder& builder, const Branch& branch, int stage, std::vector<RankGroups>& groups)
      : b_(builder),
        grid_(branch.grid),
        stage_(stage),
        width_(branch.stage_ranks()),
        groups_(groups) {
    if (b_.step_.only.valid()) own_ = branch.place_of(b_.step_.only) % width_;
  }

  void make(bool partials);
  // Adds the groups of the first stage's embedding and its copy on the ranks of stage `other`.
  void make_tied(int other);

 private:
  Rank rank(int place, int stage) const {
    return Rank(static_cast<std::size_t>(grid_.first_rank + width_ * stage + place));
  }
  Rank rank(int place) const { return rank(place, stage_); }
  RankGroups& at(int place, int stage) {
    return own_ ? groups_.front() : groups_[static_cast<std::size_t>(width_ * stage + place)];
  }
  void set(int place, GroupId RankGroups::* field, GroupId group) {
    if (!own_ || *own_ == place) at(place, stage_).*field = group;
  }
  // For `count` like things in blocks of `size`: calls visit(first of a block) for all blocks, or
  // for the one that contains `own`.
  template <class Visit>
  static void blocks(int count, int size, std::optional<int> own, Visit visit) {
    for (int block = own ? *own / size * size : 0; block < (own ? *own + 1 : count); block += size)
      visit(block);
  }
  // Adds groups of `size` members, `stride` apart, inside blocks of size·stride consecutive places.
  void spaced(GroupKind kind, int size, int stride, GroupId RankGroups::* field);
  void make_cells(int cell);
  // For the places first, first + stride, …: adds shard groups of consecutive places, and replica
  // groups of equal positions in them.
  void divide(int first, int stride, GroupId RankGroups::* shards, GroupId RankGroups::* replicas);
  void divide_all(int stride, GroupId RankGroups::* shards, GroupId RankGroups::* replicas) {
    for (int first = own_ ? *own_ % stride : 0; first < (own_ ? *own_ % stride + 1 : stride);
         ++first)
      divide(first, stride, shards, replicas);
  }

  Builder& b_;
  const ModuleLayout& grid_;
  const int stage_, width_;
  std::vector<RankGroups>& groups_;
  std::optional<int> own_;  // place in the stage
};

void StageGroups::spaced(GroupKind kind, int size, int stride, GroupId RankGroups::* field) {
  blocks(width_, size * stride, own_, [&](int block) {
    const int own = own_ ? *own_ % stride : 0;
    for (int offset = own; offset < (own_ ? own + 1 : stride); ++offset) {
      const GroupId group =
          b_.add_group(kind, RankList::spaced(rank(block + offset), stride, size));
      for (int i = 0; i < size; ++i) set(block + offset + i * stride, field, group);
    }
  });
}

void StageGroups::make_cells(int cell) {
  blocks(width_, cell, own_, [&](int block) {
    RankList members = RankList::spaced(rank(block), 1, cell);
    // A cell that equals one of its groups uses that group.
    const RankGroups& first = at(block, stage_);
    GroupId same;
    for (const GroupId group : {first.tensor, first.context, first.expert})
      if (group.valid() && b_.program_.groups[group.value].members == members) same = group;
    const GroupId group = same.valid() ? same : b_.add_group(GroupKind::cell, std::move(members));
    for (int i = 0; i < cell; ++i) set(block + i, &RankGroups::cell, group);
  });
}

void StageGroups::divide(int first, int stride, GroupId RankGroups::* shards,
                         GroupId RankGroups::* replicas) {
  const int count = (width_ - first + stride - 1) / stride;
  int size = grid_.shard == Shard::none ? 1 : count;
  if (grid_.shard != Shard::none && grid_.shard_ranks > 0)
    size = std::min(count, grid_.shard_ranks);
  std::optional<int> own;
  if (own_) own = (*own_ - first) / stride;
  // Members begin, begin + step, … up to end.
  const auto add = [&](int begin, int step, int end, GroupId RankGroups::* field) {
    const GroupId group =
        b_.add_group(GroupKind::data, RankList::spaced(rank(first + begin * stride), step * stride,
                                                       (end - begin + step - 1) / step));
    if (own) return set(*own_, field, group);
    for (int i = begin; i < end; i += step) set(first + i * stride, field, group);
  };
  blocks(count, size, own,
         [&](int begin) { add(begin, 1, std::min(begin + size, count), shards); });
  const int offset = own ? *own % size : 0;
  for (int i = offset; i < (own ? offset + 1 : size); ++i) add(i, size, count, replicas);
}

void StageGroups::make(bool partials) {
  spaced(GroupKind::tensor, grid_.tp, 1, &RankGroups::tensor);
  spaced(GroupKind::context, grid_.cp, grid_.tp, &RankGroups::context);
  if (partials) spaced(GroupKind::tensor, grid_.tp, 1, &RankGroups::partials);
  const bool spread = grid_.experts_tp() == 1;  // an expert group spans tensor-parallel ranks
  spaced(GroupKind::expert, grid_.ep, spread ? 1 : grid_.tp, &RankGroups::expert);
  make_cells(cell_ranks(grid_));
  divide_all(grid_.tp, &RankGroups::shards, &RankGroups::replicas);
  if (grid_.ep > 1 || (spread && grid_.tp > 1)) {
    divide_all(spread ? grid_.ep : grid_.ep * grid_.tp, &RankGroups::expert_shards,
               &RankGroups::expert_replicas);
    return;
  }
  blocks(width_, 1, own_, [&](int place) {
    RankGroups& mine = at(place, stage_);
    mine.expert_shards = mine.shards;
    mine.expert_replicas = mine.replicas;
  });
}

void StageGroups::make_tied(int other) {
  blocks(width_, 1, own_, [&](int place) {
    const GroupId group = b_.add_group(GroupKind::data, {rank(place, stage_), rank(place, other)});
    for (const int stage : {stage_, other}) at(place, stage).tied = group;
  });
}

namespace {

// Returns the pipeline indices of the embedding on the first stage and of its copy in the head on
// the last; twice the same if there is no copy.
std::pair<int, int> tied_stages(const Model& model, const Branch& branch) {
  std::pair<int, int> ends;
  for (std::size_t s = 0; s < branch.stages.size(); ++s)
    for (const Chunk& chunk : branch.stages[s].chunks) {
      const Module& module = model.modules[chunk.module.value];
      if (!module.tied) continue;
      if (chunk.layers.begin == 0) ends.first = branch.rank_of_stage[s];
      if (chunk.layers.end == static_cast<int>(layers(module).size()))
        ends.second = branch.rank_of_stage[s];
    }
  return ends;
}

}  // namespace

void Builder::make_groups(const Branch& branch) {
  std::vector<RankGroups>& groups = groups_.emplace_back();
  const bool part = step_.only.valid();
  const int first = part ? branch.index_of(step_.only) : 0, end = part ? first + 1 : branch.grid.pp;
  if (first < 0) return;
  groups.resize(part ? 1 : static_cast<std::size_t>(branch.grid.ranks));
  const bool partials = partial_sums(branch);
  for (int stage = first; stage < end; ++stage)
    StageGroups(*this, branch, stage, groups).make(partials);
  const auto [embeds, heads] = tied_stages(program_.model, branch);
  const bool mine = !part || embeds == first || heads == first;
  if (embeds != heads && mine) StageGroups(*this, branch, embeds, groups).make_tied(heads);
}

}  // namespace polyphony::lowering
