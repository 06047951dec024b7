#include "shared/search/space.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <numeric>
#include <optional>

#include "shared/check/check.h"
#include "shared/model/chain_grid.h"
#include "shared/search/choices.h"
#include "shared/search/module_grids.h"

namespace polyphony {
namespace {

constexpr int kMostEncoderWorks = 64;

std::vector<ScheduleKind> listed_schedules() {
  std::vector<ScheduleKind> listed;
  for (const Schedule& row : kSchedules)
    if (row.listed) listed.push_back(row.kind);
  return listed;
}

std::string without_digits(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (!std::isdigit(static_cast<unsigned char>(c))) result += c;
  }
  return result;
}

}  // namespace

void Rejections::add(Placement placement, const std::string& reason, std::int64_t count) {
  const auto [known, added] = known_.try_emplace({placement, without_digits(reason)}, all_.size());
  if (added) all_.push_back({placement, reason, 0});
  all_[known->second].count += count;
}

Space::Space(const Scenario& scenario) : scenario_(scenario) {
  const Model& model = scenario.model;
  if (scenario.search) search_ = *scenario.search;
  search_.modules.resize(model.modules.size());
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    if (grid_owner(model, ModuleId(m)) != ModuleId(m)) continue;
    if (ModuleId(m) == language_module(model)) language_ = owners_.size();
    owners_.emplace_back(m);
  }
}

bool Space::shares_language_ranks(const Division& division, std::size_t owner) const {
  return owner != language_ && division.ranks[owner] == division.ranks[language_];
}

std::vector<Division> Space::divisions(Rejections& rejections) const {
  const RankRange world{0, scenario_.cluster.ranks()};
  std::vector<Division> found;
  for (const Placement placement : choice(search_.placement, all_of<Placement>())) {
    if (owners_.size() == 1 && placement != Placement::homogeneous) continue;
    std::vector<RankRange> ranks(owners_.size(), world);
    switch (placement) {
      case Placement::homogeneous:
        found.push_back({placement, {ranks}});
        break;
      case Placement::colocated:
        if (language_ + 1 < owners_.size())
          rejections.add(placement,
                         "a module that the language module feeds needs ranks of its own");
        else
          found.push_back({placement, {ranks}});
        break;
      case Placement::non_colocated:
        divide(placement, 0, 0, world.count, ranks, found, rejections);
        break;
      case Placement::mixed:
        if (owners_.size() > 2) divide(placement, 0, 0, world.count, ranks, found, rejections);
        break;
    }
  }
  return found;
}

// Placement mixed: all encoders share one set of ranks, which lies before the language module's.
// Modules that the language module feeds have ranks of their own.
void Space::divide(Placement placement, std::size_t owner, int first, int left,
                   std::vector<RankRange>& ranks, std::vector<Division>& found,
                   Rejections& rejections) const {
  const bool mixed = placement == Placement::mixed;
  if (owner == owners_.size()) {
    // The language module gets the remaining ranks; modules after it lie at the end.
    std::vector<RankRange> placed = ranks;
    placed[language_].count = left;
    int next = placed[language_].first + left;
    for (std::size_t o = language_ + 1; o < owners_.size(); ++o) {
      placed[o].first = next;
      next += placed[o].count;
    }
    Division division{placement, placed};
    if (std::find(found.begin(), found.end(), division) == found.end()) found.push_back(division);
    return;
  }
  if (owner == language_) {
    ranks[owner] = {first, 0};
    return divide(placement, owner + 1, first, left, ranks, found, rejections);
  }
  const Cluster& cluster = scenario_.cluster;
  const int least = cluster.nodes > 1 ? cluster.ranks_per_node : 1;
  const std::vector<int>& given = search_.modules[owners_[owner].value].ranks;
  if (mixed && owner > 0 && owner < language_) {  // on the ranks of the first encoder
    ranks[owner] = ranks[0];
    return divide(placement, owner + 1, first, left, ranks, found, rejections);
  }
  for (const int own : choice(given, powers_of_two(least, left / 2))) {
    if (own >= left) {
      rejections.add(placement, scenario_.model.modules[owners_[owner].value].name + " on " +
                                    std::to_string(own) + " of " + std::to_string(left) +
                                    " ranks leaves none for the language module");
      continue;
    }
    ranks[owner] = {first, own};
    const bool before = owner < language_;
    divide(placement, owner + 1, before ? first + own : first, left - own, ranks, found,
           rejections);
  }
}

std::vector<ModuleLayout> Space::grids(const Division& division, std::size_t owner,
                                       Rejections& rejections) const {
  const ModuleId id = owners_[owner];
  // An encoder on the same ranks as a pipeline runs whole on each of them, unless its list has
  // other values.
  const bool pipelined = !shares_language_ranks(division, owner);
  const std::vector<Module>& modules = scenario_.model.modules;
  int blocks = modules[id.value].layers;
  if (one_grid(division))
    blocks = std::accumulate(modules.begin(), modules.end(), 0,
                             [](int sum, const Module& module) { return sum + module.layers; });
  return ModuleGrids(scenario_, modules[id.value], blocks, search_.modules[id.value],
                     division.placement, owner == language_, pipelined, rejections)
      .on(division.ranks[owner]);
}

// Returns the choices for encoder_microbatches; 0: the layout's default.
std::vector<int> Space::encoder_parts(bool pipelined, bool flushes, int microbatches) const {
  if (!pipelined) return {0};
  std::vector<int> works{0};
  if (flushes) works = powers_of_two(1, std::min(microbatches, kMostEncoderWorks));
  std::erase_if(works, [&](int parts) { return parts > 0 && microbatches % parts != 0; });
  return choice(search_.encoder_microbatches, works);
}

std::vector<Drive> Space::drives(const Division& division, const ModuleLayout& language,
                                 Rejections& rejections) const {
  const int share = std::max(1, scenario_.data.global_batch / language.dp());
  bool shared = false;
  for (std::size_t owner = 0; owner < language_; ++owner)
    shared = shared || (!one_grid(division) && shares_language_ranks(division, owner));
  std::vector<int> counts;
  for (const int microbatch : choice(search_.microbatch, powers_of_two(1, share))) {
    if (microbatch > share)
      rejections.add(division.placement, "a microbatch of " + std::to_string(microbatch) +
                                             " samples is larger than the " +
                                             std::to_string(share) +
                                             " samples of a data-parallel replica");
    else
      counts.push_back(share / microbatch);
  }
  std::sort(counts.begin(), counts.end(), std::greater<>());  // the smallest microbatch first
  std::vector<Drive> drives;
  const bool pipeline = language.pp * language.vpp > 1;
  for (const ScheduleKind kind : pipeline ? choice(search_.schedule, listed_schedules())
                                          : only(search_.schedule, ScheduleKind::one_f_one_b)) {
    for (const int microbatches : without_repeats(counts))
      for (const EncoderOrder order : shared
                                          ? choice(search_.encoder_order, {EncoderOrder::in_turn})
                                          : std::vector<EncoderOrder>{EncoderOrder::in_turn}) {
        const bool flushes = shared && language.pp > 1 && order == EncoderOrder::in_turn;
        for (const int parts : encoder_parts(shared && language.pp > 1, flushes, microbatches)) {
          const int flush = flushes ? microbatches / std::max(1, parts) : microbatches;
          const std::string why = schedule(kind).refusal({language.pp, language.vpp, flush});
          if (!why.empty()) {
            rejections.add(division.placement, std::string("schedule ") + name(kind) + " " + why);
            continue;
          }
          for (const Bridge bridge : one_grid(division) ? std::vector<Bridge>{Bridge::sharded}
                                                        : choice(search_.bridge, {Bridge::sharded}))
            drives.push_back({kind, microbatches, parts, order, bridge});
        }
      }
  }
  return drives;
}

Layout Space::assemble(const Division& division, const std::vector<ModuleLayout>& grids,
                       const Drive& drive) const {
  const Model& model = scenario_.model;
  Layout layout;
  layout.placement = division.placement;
  layout.schedule = drive.schedule;
  layout.microbatches = drive.microbatches;
  layout.encoder_microbatches = drive.encoder_microbatches;
  layout.encoder_order = drive.encoder_order;
  layout.bridge = drive.bridge;
  layout.modules.resize(model.modules.size());
  const bool one = one_grid(division);
  for (std::size_t m = 0; m < layout.modules.size(); ++m) {
    const ModuleId owner = grid_owner(model, ModuleId(m));
    const auto place = static_cast<std::size_t>(std::find(owners_.begin(), owners_.end(), owner) -
                                                owners_.begin());
    ModuleLayout& grid = layout.modules[m];
    grid = grids[one ? language_ : place];
    if (!one || owner == owners_[language_]) continue;
    const ModuleSearch& own = search_.modules[owner.value];
    if (own.recompute.size() == 1) grid.recompute = own.recompute.front();
  }
  if (one) leave_to_language(model, layout);
  return layout;
}

bool Space::allows(const Layout& layout) const {
  const auto in = [](const auto& list, const auto& value) {
    return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
  };
  const ModuleLayout& language = layout.modules[owners_[language_].value];
  const int share = std::max(1, scenario_.data.global_batch / language.dp());
  const auto is_asked = [&](int microbatch) { return share / microbatch == layout.microbatches; };
  if (!in(search_.placement, layout.placement) || !in(search_.bridge, layout.bridge) ||
      !in(search_.encoder_order, layout.encoder_order))
    return false;
  if (language.pp * language.vpp > 1 && !in(search_.schedule, layout.schedule)) return false;
  if (!search_.microbatch.empty() &&
      std::none_of(search_.microbatch.begin(), search_.microbatch.end(), is_asked))
    return false;
  if (layout.encoder_microbatches > 0 &&
      !in(search_.encoder_microbatches, layout.encoder_microbatches))
    return false;
  const bool one = layout.placement == Placement::homogeneous;
  for (std::size_t o = 0; o < owners_.size(); ++o) {
    const ModuleSearch& lists = search_.modules[owners_[o].value];
    const ModuleLayout& grid = layout.modules[owners_[o].value];
    // Recomputation of a part of the blocks: some are recomputed, some are not.
    if (!in(lists.recompute, grid.recompute) ||
        (!grid.recompute_blocks.empty() && !in(lists.recompute, Recompute::none)))
      return false;
    if (one && o != language_) continue;
    const bool shards = grid.dp() * grid.cp > 1;
    if (!in(lists.tp, grid.tp) || !in(lists.cp, grid.cp) || !in(lists.pp, grid.pp) ||
        !in(lists.vpp, grid.vpp) || !in(lists.dp, grid.dp()) || !in(lists.ep, grid.ep) ||
        !in(lists.expert_tp, grid.expert_tp) || (grid.tp > 1 && !in(lists.sp, grid.sp)) ||
        !in(piece_choices(lists, grid), grid.tp_pieces) ||
        (shards && !in(lists.shard, grid.shard)) ||
        (grid.shard != Shard::none && !in(lists.shard_ranks, grid.shard_ranks)) ||
        (grid.cp > 1 && !in(lists.tokens, grid.tokens)) ||
        (grid.cp > 1 && !in(lists.cp_attention, grid.cp_attention)) ||
        !in(lists.spread, grid.spread))
      return false;
    if (!one && o != language_ && layout.placement != Placement::colocated &&
        !in(lists.ranks, grid.ranks))
      return false;
  }
  return true;
}

Layout at_rest(const Scenario& scenario, Layout layout) {
  const Model& model = scenario.model;
  for (std::size_t m = 0; m < layout.modules.size(); ++m) {
    ModuleLayout& grid = layout.modules[m];
    const int copies = grid.dp() * grid.cp;
    if (grid.tp == 1) grid.sp = false, grid.tp_pieces = 1;
    if (grid.expert_tp == grid.tp) grid.expert_tp = 0;
    if (copies == 1) grid.shard = Shard::none;
    if (grid.shard == Shard::none || grid.shard_ranks == copies) grid.shard_ranks = 0;
    if (grid.cp == 1) grid.tokens = TokenAssignment::contiguous;
    if (grid.cp == 1) grid.cp_attention = ContextAttention::all_gather;
    if (!grid.gathers_keys()) grid.cp_heads = 0;
    if (grid.recompute_blocks == std::vector<int>{0, model.modules[m].layers})
      grid.recompute_blocks.clear();
    if (grid.pp * grid.vpp == 1) grid.blocks.clear();
  }
  const ModuleLayout& language = layout.modules[language_module(model).value];
  const bool fed_apart =
      layout.placement != Placement::homogeneous && layout.placement != Placement::colocated;
  if (language.pp * language.vpp == 1 && !fed_apart && layout.actions.empty() &&
      !schedule(layout.schedule).keeps_all_activations)
    layout.schedule = ScheduleKind::one_f_one_b;
  return layout;
}

std::vector<Layout> candidates(const Scenario& scenario, std::vector<Rejection>* rejected) {
  const Space space(scenario);
  Rejections rejections;
  std::vector<Layout> found;
  for (const Division& division : space.divisions(rejections)) {
    const std::size_t owners = space.owners().size();
    std::vector<std::vector<ModuleLayout>> choices(owners);
    for (std::size_t o = 0; o < owners; ++o)
      choices[o] = Space::one_grid(division) && o != space.language()
                       ? std::vector<ModuleLayout>(1)
                       : space.grids(division, o, rejections);
    // Counts through all combinations of the owners' grids.
    std::vector<std::size_t> at(owners, 0);
    bool more =
        std::all_of(choices.begin(), choices.end(), [](const auto& of) { return !of.empty(); });
    while (more) {
      std::vector<ModuleLayout> grids;
      for (std::size_t o = 0; o < owners; ++o) grids.push_back(choices[o][at[o]]);
      for (const Drive& drive : space.drives(division, grids[space.language()], rejections)) {
        Layout layout = space.assemble(division, grids, drive);
        if (const auto why = check_layout(scenario, layout))
          rejections.add(division.placement, why->reason);
        else
          found.push_back(std::move(layout));
      }
      more = false;
      for (std::size_t o = owners; o-- > 0 && !more;) {
        more = ++at[o] < choices[o].size();
        if (!more) at[o] = 0;
      }
    }
  }
  if (rejected) *rejected = rejections.all();
  return found;
}

}  // namespace polyphony
