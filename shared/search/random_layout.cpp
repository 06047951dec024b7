#include "shared/search/random_layout.h"

#include <algorithm>
#include <vector>

#include "shared/check/check.h"
#include "shared/model/chain_grid.h"
#include "shared/search/draws.h"

namespace polyphony {
namespace {

constexpr int kTries = 1000;

class Drawn {
 public:
  Drawn(const Scenario& scenario, Placement placement, Draws draws)
      : scenario_(scenario),
        model_(scenario.model),
        language_(language_module(model_)),
        draws_(draws) {
    layout_.placement = placement;
    layout_.modules.resize(model_.modules.size());
  }

  Layout run() {
    share_ranks();
    for (const std::size_t group : order_)
      for (const std::size_t m : groups_[group]) draw_grid(m);
    if (layout_.placement == Placement::homogeneous) one_grid();
    follow_owners();
    draw_works();
    if (layout_.placement != Placement::homogeneous && draws_.chance(25))
      layout_.bridge = Bridge::leader;
    draw_head_groups();
    const auto measured = [](const Module& module) { return module.abstract.is; };
    const int pieces = draws_.chance(20) ? 2 + draws_.below(3) : 1;
    for (ModuleLayout& to : layout_.modules)
      if (to.tp > 1 && std::ranges::none_of(model_.modules, measured)) to.tp_pieces = pieces;
    return layout_;
  }

 private:
  ModuleLayout& grid(std::size_t m) { return layout_.modules[m]; }
  bool alone() const {
    return layout_.placement == Placement::non_colocated || layout_.placement == Placement::mixed;
  }

  // Draws which modules share ranks, and how many ranks each group has; the language module has the
  // rest.
  void share_ranks() {
    for (std::size_t m = 0; m < model_.modules.size(); ++m) {
      if (model_.modules[m].kind == ModuleKind::projector) continue;
      std::size_t group = groups_.size();
      if (!alone()) group = 0;
      if (layout_.placement == Placement::mixed && !groups_.empty() && draws_.chance(50))
        group = static_cast<std::size_t>(draws_.below(static_cast<int>(groups_.size())));
      if (group == groups_.size()) groups_.emplace_back();
      groups_[group].push_back(m);
    }
    for (std::size_t group = 0; group < groups_.size(); ++group) order_.push_back(group);
    if (draws_.chance(10)) std::reverse(order_.begin(), order_.end());
    const int world = draw_world(), count = static_cast<int>(groups_.size());
    std::vector<int> ranks(groups_.size(), 0);
    int left = world;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      if (holds_language(group)) continue;
      ranks[group] = draw_part(left, world, count);
      left -= ranks[group];
    }
    int first = 0;
    for (const std::size_t group : order_) {
      if (holds_language(group)) ranks[group] = std::max(1, left);
      for (const std::size_t m : groups_[group]) {
        grid(m).first_rank = first;
        grid(m).ranks = ranks[group];
      }
      first += ranks[group];
    }
  }

  bool holds_language(std::size_t group) const {
    return std::find(groups_[group].begin(), groups_[group].end(), language_.value) !=
           groups_[group].end();
  }

  int draw_world() {
    const Cluster& cluster = scenario_.cluster;
    if (draws_.chance(80)) return cluster.ranks();
    if (cluster.nodes > 1 && draws_.chance(80))
      return cluster.ranks_per_node * (1 + draws_.below(cluster.nodes));
    return 1 + draws_.below(cluster.ranks());
  }

  int draw_part(int left, int world, int groups) {
    std::vector<int> sizes;
    for (int size = 1; size <= std::max(1, world / 2); size *= 2)
      if (size < left) sizes.push_back(size);
    const int node = scenario_.cluster.ranks_per_node;
    for (int size = node; size <= world / 2; size += node)
      if (size < left && draws_.chance(20)) sizes.push_back(size);
    if (groups == 1 || sizes.empty()) return 1;
    return draws_.pick(sizes);
  }

  void draw_head_groups() {
    ModuleLayout& to = grid(language_.value);
    if (!to.gathers_keys() || !draws_.chance(50)) return;
    const Module& module = model_.modules[language_.value];
    const int heads = std::max(1, module.kv_heads / to.tp);
    to.cp_heads = draws_.pick(divisors(heads, heads));
  }

  void draw_grid(std::size_t m) {
    const Module& module = model_.modules[m];
    ModuleLayout& to = grid(m);
    const bool shares = layout_.placement != Placement::homogeneous && ModuleId(m) != language_ &&
                        to.first_rank == grid(language_.value).first_rank &&
                        layout_.placement != Placement::non_colocated;
    std::vector<int> sizes;
    for (const int tp : divisors(to.ranks, 2 * scenario_.cluster.domain_size()))
      if (module.abstract.is || module.heads % tp == 0) sizes.push_back(tp);
    to.tp = draws_.pick(sizes);
    if (draws_.chance(25)) to.cp = draws_.pick(divisors(to.ranks / to.tp, 8));
    draw_pipeline(m, shares, to);
    to.sp = to.tp > 1 && draws_.chance(50);
    draw_experts(module, to);
    draw_state(module, to);
    if (to.cp > 1) to.tokens = static_cast<TokenAssignment>(draws_.below(3));  // not random
    if (to.cp > 1) to.cp_attention = draws_.any<ContextAttention>();
    if (layout_.placement != Placement::homogeneous && ModuleId(m) != language_ &&
        draws_.chance(20))
      to.spread = Spread::images;
  }

  // Encoders on the same ranks have the same pp and vpp; on the language module's ranks, pp divides
  // its pp.
  void draw_pipeline(std::size_t m, bool shares, ModuleLayout& to) {
    const Module& module = model_.modules[m];
    std::vector<int> depths =
        divisors(to.ranks / (to.tp * to.cp), std::min(shares ? 8 : 64, module.layers));
    const ModuleLayout* partner = nullptr;  // an encoder on the same ranks, already drawn
    for (std::size_t other = 0; other < m; ++other)
      if (layout_.placement != Placement::homogeneous &&
          model_.modules[other].kind != ModuleKind::projector &&
          grid(other).first_rank == to.first_rank)
        partner = &grid(other);
    if (partner && ModuleId(m) != language_) {
      if (to.ranks % (to.tp * to.cp * partner->pp) == 0) to.pp = partner->pp;
      to.vpp = partner->vpp;
      return;
    }
    if (partner && partner->pp > 1)
      std::erase_if(depths, [&](int depth) { return depth % partner->pp != 0; });
    if (depths.empty()) depths.push_back(1);
    if (!shares || draws_.chance(50)) to.pp = draws_.pick(depths);
    const bool encoder = layout_.placement != Placement::homogeneous && ModuleId(m) < language_;
    if (encoder && to.pp > 1 && 2 * to.pp <= module.layers && draws_.chance(20)) to.vpp = 2;
    if (encoder && !shares && draws_.chance(25)) to.ahead = 1 + draws_.below(4);
  }

  void draw_experts(const Module& module, ModuleLayout& to) {
    if (module.experts == 0) return;
    if (to.sp && draws_.chance(50)) to.expert_tp = 1;
    const int copies = to.cp * to.dp() * (to.expert_tp == 1 ? to.tp : 1);
    std::vector<int> sizes;
    for (const int ep : divisors(module.experts, copies))
      if (copies % ep == 0) sizes.push_back(ep);
    to.ep = draws_.pick(sizes);
  }

  void draw_state(const Module& module, ModuleLayout& to) {
    to.shard = draws_.any<Shard>();
    if (to.shard != Shard::none && draws_.chance(25))
      to.shard_ranks = draws_.pick(divisors(to.dp() * to.cp, to.dp() * to.cp));
    to.recompute = draws_.any<Recompute>();
    if (to.recompute == Recompute::none || !draws_.chance(30)) return;
    const int first = draws_.below(module.layers);
    to.recompute_blocks = {first, first + 1 + draws_.below(module.layers - first)};
  }

  // All modules have the language module's grid, but each its own recomputation.
  void one_grid() {
    const ModuleLayout& of = grid(language_.value);
    for (std::size_t m = 0; m < model_.modules.size(); ++m) {
      if (ModuleId(m) == language_) continue;
      ModuleLayout& to = grid(m);
      const ModuleLayout own = to;
      to = of;
      to.recompute = own.recompute;
      to.recompute_blocks = own.recompute_blocks;
      to.blocks.clear();
    }
    leave_to_language(model_, layout_);
  }

  void follow_owners() {
    for (std::size_t m = 0; m < model_.modules.size(); ++m) {
      const ModuleId owner = grid_owner(model_, ModuleId(m));
      if (owner == ModuleId(m)) continue;
      grid(m) = grid(owner.value);
      grid(m).recompute = Recompute::none;
      grid(m).recompute_blocks.clear();
    }
  }

  int chain_blocks() const {
    int blocks = 0;
    for (std::size_t m = 0; m < model_.modules.size(); ++m)
      if (layout_.placement == Placement::homogeneous || ModuleId(m) == language_)
        blocks += model_.modules[m].layers;
    return blocks;
  }

  void draw_works() {
    ModuleLayout& of = grid(language_.value);
    layout_.schedule = ScheduleKind::one_f_one_b;
    if (draws_.chance(of.pp > 1 ? 60 : 15))
      layout_.schedule =
          static_cast<ScheduleKind>(draws_.below(static_cast<int>(kLastSchedule) + 1));
    const Schedule& row = schedule(layout_.schedule);
    const int deepest = std::max(1, chain_blocks() / of.pp);
    if (row.min_virtual_stages > 1) of.vpp = row.min_virtual_stages;
    if (row.max_virtual_stages > row.min_virtual_stages &&
        (row.min_virtual_stages > 1 || draws_.chance(20)))
      of.vpp = std::min({deepest, 2 + draws_.below(4), row.max_virtual_stages});
    if (layout_.placement == Placement::homogeneous)
      for (ModuleLayout& other : layout_.modules) other.vpp = of.vpp;
    const int share = std::max(1, scenario_.data.global_batch / of.dp());
    std::vector<int> sizes;
    for (int size = 1; size <= share; size *= 2) sizes.push_back(size);
    layout_.microbatches = share / draws_.pick(sizes);
    layout_.microbatches =
        std::max(layout_.microbatches, std::min(share, row.min_microbatches_per_rank * of.pp));
    if (shares_language()) layout_.encoder_order = draws_.any<EncoderOrder>();
    if (layout_.encoder_order == EncoderOrder::interleaved && of.vpp == 1)
      layout_.schedule = ScheduleKind::one_f_one_b;
    if (schedule(layout_.schedule).groups_of_ranks ||
        layout_.encoder_order == EncoderOrder::interleaved)
      layout_.microbatches = std::max(of.pp, layout_.microbatches / of.pp * of.pp);
    if (layout_.placement != Placement::homogeneous && draws_.chance(shares_language() ? 60 : 25))
      layout_.encoder_microbatches =
          draws_.pick(divisors(layout_.microbatches, layout_.microbatches));
    if (of.pp * of.vpp > 1 && draws_.chance(20)) split(of, chain_blocks());
  }

  bool shares_language() const {
    if (layout_.placement == Placement::homogeneous) return false;
    for (std::size_t m = 0; m < language_.value; ++m)
      if (model_.modules[m].kind != ModuleKind::projector &&
          layout_.modules[m].first_rank == layout_.modules[language_.value].first_rank)
        return true;
    return false;
  }

  // Nearly equal stages, with a few blocks moved. In a chain, the last module's list counts.
  void split(ModuleLayout& of, int blocks) {
    ModuleLayout& to = layout_.placement == Placement::homogeneous ? layout_.modules.back() : of;
    const int stages = of.pp * of.vpp;
    to.blocks.assign(static_cast<std::size_t>(stages), blocks / stages);
    for (int s = 0; s < blocks % stages; ++s) ++to.blocks[static_cast<std::size_t>(s)];
    for (int moved = draws_.below(4); moved > 0; --moved) {
      int& from = to.blocks[static_cast<std::size_t>(draws_.below(stages))];
      if (from < 2) continue;
      --from;
      ++to.blocks[static_cast<std::size_t>(draws_.below(stages))];
    }
  }

  const Scenario& scenario_;
  const Model& model_;
  const ModuleId language_;
  Draws draws_;
  Layout layout_;
  std::vector<std::vector<std::size_t>> groups_;  // of modules on the same ranks
  std::vector<std::size_t> order_;                // of groups, by first rank
};

}  // namespace

std::optional<Layout> random_layout(const Scenario& scenario, Placement placement,
                                    std::uint64_t seed) {
  for (int i = 0; i < kTries; ++i) {
    const Draws draws(seed, static_cast<std::uint64_t>(i));
    Layout layout = Drawn(scenario, placement, draws).run();
    if (!check_layout(scenario, layout)) return layout;
  }
  return {};
}

std::optional<Layout> random_layout(const Scenario& scenario, std::uint64_t seed) {
  const std::vector<Placement> placements = placements_of(scenario.model);
  const std::size_t first = random_bits(seed, 0) % placements.size();
  for (std::size_t i = 0; i < placements.size(); ++i)
    if (auto layout = random_layout(scenario, placements[(first + i) % placements.size()], seed))
      return layout;
  return {};
}

}  // namespace polyphony
