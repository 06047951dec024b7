#include <algorithm>
#include <numeric>

#include "shared/check/checks.h"
#include "shared/text/number_text.h"

namespace polyphony::checks {
namespace {

bool overlap(const ModuleLayout& a, const ModuleLayout& b) {
  return a.first_rank < b.first_rank + b.ranks && b.first_rank < a.first_rank + a.ranks;
}

Verdict check_pair(const Model& model, const Layout& layout, std::size_t a, std::size_t b) {
  const ModuleLayout &one = layout.modules[a], &other = layout.modules[b];
  const std::string& first = model.modules[a].name;
  const std::string& second = model.modules[b].name;
  switch (layout.placement) {
    case Placement::homogeneous:
      if (one.tp != other.tp || one.cp != other.cp || one.pp != other.pp || one.vpp != other.vpp ||
          one.shard != other.shard || one.shard_ranks != other.shard_ranks ||
          one.copies_items() != other.copies_items() || !same_ranks(one, other))
        return refuse(first + ": in a homogeneous layout it must have the same grid as " + second +
                      " (tp, cp, pp, vpp, shard, shard_ranks, spread and ranks)");
      return {};
    case Placement::colocated:
      if (!same_ranks(one, other))
        return refuse(first + ": colocated grids must cover the same ranks as " + second);
      break;
    case Placement::non_colocated:
    case Placement::mixed:
      if (!overlap(one, other)) return {};
      if (layout.placement == Placement::non_colocated || !same_ranks(one, other))
        return refuse("rank " + number(std::max(one.first_rank, other.first_rank)) +
                      " belongs to both " + first + " and " + second +
                      (layout.placement == Placement::mixed
                           ? "; their ranks must be the same or disjoint"
                           : "; non-colocated grids must be disjoint"));
      break;
  }
  const ModuleId language = language_module(model);
  const bool interleaved = layout.encoder_order == EncoderOrder::interleaved;
  if (ModuleId(a) == language && !interleaved)
    return refuse(second + ": cannot share the ranks of " + first +
                  ", which feeds it, except in a homogeneous layout or with encoder_order " +
                  "interleaved; give it ranks of its own");
  // Both would run in the encoder's order, which runs ahead of the gradients that return to it.
  if (ModuleId(a) < language && language < ModuleId(b)) {
    if (interleaved && same_ranks(other, layout.modules[language.value])) return {};
    return refuse(second + ": cannot share the ranks of " + first +
                  ", whose rows it waits for through " + model.modules[language.value].name +
                  ", except in a homogeneous layout; give it ranks of its own");
  }
  const bool with_language = ModuleId(a) == language || ModuleId(b) == language;
  if (!with_language && (one.pp != other.pp || one.vpp != other.vpp))
    return refuse(first + ": encoders on the same ranks need the same pp and vpp; " + second +
                  " has pp " + number(other.pp) + ", vpp " + number(other.vpp));
  if (ModuleId(b) == language && other.pp % one.pp != 0)
    return refuse(first + ": pp must divide the pp of " + second + " on the same ranks, " +
                  number(other.pp) + " (got " + number(one.pp) +
                  "); nearest legal: " + nearest_divisors(other.pp, one.pp));
  if (with_language && interleaved && one.pp != other.pp)
    return refuse((ModuleId(b) == language ? first : second) +
                  ": encoder_order interleaved joins it into one pipeline with " +
                  model.modules[language.value].name + "; use the same pp, " +
                  number(layout.modules[language.value].pp) +
                  (ModuleId(b) == language ? ", or encoder_order phases" : ""));
  return {};
}

// Returns the lowest rank that is in no grid; the world size if all ranks are in one.
int first_without_module(const Layout& layout) {
  int rank = 0;
  for (bool grew = true; grew;) {
    grew = false;
    for (const ModuleLayout& grid : layout.modules) {
      if (grid.first_rank > rank || grid.first_rank + grid.ranks <= rank) continue;
      rank = grid.first_rank + grid.ranks;
      grew = true;
    }
  }
  return rank;
}

// Checks tied embeddings: the embedding and the output matrix, which is its copy, must be in one
// chunk or on two ranks.
Verdict check_tied(const Model& model, const Layout& layout) {
  const ModuleId language = language_module(model);
  const Module& module = model.modules[language.value];
  if (!module.tied) return {};
  const bool chain = layout.placement == Placement::homogeneous && model.modules.size() > 1;
  const int pp = layout.modules[language.value].pp, vpp = layout.modules[language.value].vpp;
  const Schedule& row = schedule(layout.schedule);
  if (pp > 1 && layout.actions.empty() &&
      row.place({pp, vpp}, 0) == row.place({pp, vpp}, pp * vpp - 1))
    return refuse(module.name +
                  ": tied embeddings need the first and the last stage on different ranks, but "
                  "schedule " +
                  row.name +
                  " places both on the first; use interleaved or zero-bubble, or untie them");
  if (pp > 1 && !chain) return {};
  const bool cut = std::any_of(model.edges.begin(), model.edges.end(), [&](const Edge& edge) {
    return edge.from == language || (edge.to == language && edge.to_layer > 0);
  });
  const std::string subject = module.name + ": tied embeddings ";
  if (cut)
    return refuse(subject +
                  "with edges into or out of its inner layers need pp 2 or more and a grid " +
                  "of its own; otherwise untie them");
  if (vpp > 1)
    return refuse(subject +
                  "with virtual stages need pp 2 or more and a grid of its own; use vpp 1");
  return {};
}

Verdict check_bridge(const Layout& layout) {
  if (layout.bridge == Bridge::sharded) return {};
  if (layout.placement == Placement::homogeneous)
    return refuse("bridge leader: a homogeneous layout has no bridges; leave it out");
  return {};
}

}  // namespace

Verdict check_blocks(const std::string& subject, int blocks, const ModuleLayout& layout,
                     bool lone_ends) {
  const int stages = layout.pp * layout.vpp;
  // A list may leave the first stage its embedding, and the last one its head, alone.
  const int alone =
      !lone_ends || layout.blocks.size() < 2
          ? 0
          : (layout.blocks.front() == 0 ? 1 : 0) + (layout.blocks.back() == 0 ? 1 : 0);
  if (stages > blocks + alone)
    return refuse(subject + ": pp·vpp must be at most the number of blocks, " + number(blocks) +
                  " (got " + number(stages) + ")" +
                  (layout.vpp > 1 ? "; largest legal vpp for pp " + number(layout.pp) + ": " +
                                        number(std::max(1, blocks / layout.pp))
                                  : "; largest legal pp: " + number(blocks)));
  if (layout.blocks.empty()) return {};
  if (static_cast<int>(layout.blocks.size()) != stages)
    return refuse(subject + ": blocks lists " +
                  number(static_cast<std::int64_t>(layout.blocks.size())) +
                  " stages but pp·vpp is " + number(stages));
  for (std::size_t stage = 0; stage < layout.blocks.size(); ++stage) {
    const bool end =
        lone_ends && layout.blocks.size() > 1 && (stage == 0 || stage + 1 == layout.blocks.size());
    if (layout.blocks[stage] < (end ? 0 : 1))
      return refuse(subject + ": every stage needs at least one block" +
                    (lone_ends ? ", except the first and the last, which may hold the embedding or "
                                 "the head alone"
                               : ""));
  }
  const int sum = std::accumulate(layout.blocks.begin(), layout.blocks.end(), 0);
  if (sum != blocks)
    return refuse(subject + ": blocks sum to " + number(sum) + " but there are " + number(blocks));
  return {};
}

Verdict check_placement(const Model& model, const Layout& layout, int cluster_ranks) {
  const int world = world_size(layout);
  if (world > cluster_ranks)
    return refuse("the layout needs " + number(world) + " ranks, but the cluster has " +
                  number(cluster_ranks));
  if (const int orphan = first_without_module(layout); orphan < world)
    return refuse("rank " + number(orphan) + " belongs to no module; the grids must tile [0, " +
                  number(world) + ")");
  if (Verdict verdict = check_tied(model, layout)) return verdict;
  if (Verdict verdict = check_bridge(layout)) return verdict;
  const ModuleId language = language_module(model);
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    const ModuleLayout& grid = layout.modules[m];
    const ModuleId owner = grid_owner(model, ModuleId(m));
    const ModuleLayout& owners = layout.modules[owner.value];
    if (owner != ModuleId(m)) {
      if (grid.tp != owners.tp || grid.cp != owners.cp || grid.pp != owners.pp ||
          grid.sp != owners.sp || !same_ranks(grid, owners))
        return refuse(model.modules[m].name + ": a projector must have the same grid as " +
                      model.modules[owner.value].name + " (tp, cp, pp, sp and ranks)");
      continue;
    }
    for (std::size_t other = m + 1; other < model.modules.size(); ++other)
      if (model.modules[other].kind != ModuleKind::projector)
        if (Verdict verdict = check_pair(model, layout, m, other)) return verdict;
    const bool own_grids = layout.placement != Placement::homogeneous;
    const bool colocated = same_ranks(grid, layout.modules[language.value]);
    if (own_grids && language < ModuleId(m) && grid.vpp > 1 && !colocated)
      return refuse(model.modules[m].name +
                    ": vpp must be 1 for a module that the language module feeds on other ranks " +
                    "(got " + number(grid.vpp) + ")");
    const bool own = own_grids && ModuleId(m) < language && !colocated;
    if (grid.ahead < 0)
      return refuse(model.modules[m].name + ": ahead must not be negative (got " +
                    number(grid.ahead) + ")");
    if (grid.ahead > 0 && !own)
      return refuse(model.modules[m].name +
                    ": ahead applies only to an encoder with ranks of its own; leave it out");
    if (grid.spread == Spread::images && (ModuleId(m) == language || !own_grids))
      return refuse(
          model.modules[m].name +
          ": spread \"images\" applies only to an encoder with a grid of its own; leave it "
          "out");
    if (grid.spread != Spread::copied) continue;
    if (ModuleId(m) == language && (own_grids || model.modules.size() == 1))
      return refuse(model.modules[m].name + ": spread \"copied\" applies only to an encoder");
    if (grid.cp == 1)
      return refuse(model.modules[m].name +
                    ": spread \"copied\" requires context parallelism (got cp 1)");
    for (std::size_t d = 0; d < model.modules.size(); ++d)
      if (model.modules[d].kind == ModuleKind::diffusion &&
          (d == m || same_ranks(layout.modules[d], grid)))
        return refuse(model.modules[m].name +
                      ": spread \"copied\" applies to encoders, not to the latents of " +
                      model.modules[d].name);
  }
  return {};
}

}  // namespace polyphony::checks
