#include "shared/search/shortlist.h"

#include <algorithm>
#include <utility>

#include "shared/plan/plan.h"
#include "shared/search/least_recompute.h"

namespace polyphony {
namespace {

auto key_of(const ModuleLayout& grid) {
  return std::tuple(grid.tp * grid.cp * grid.pp * grid.vpp, grid.pp, grid.vpp, grid.tp, grid.cp,
                    grid.ep, grid.expert_tp, grid.sp, grid.recompute, grid.shard, grid.shard_ranks,
                    grid.tokens, grid.spread, grid.first_rank, grid.ranks, grid.recompute_blocks,
                    grid.blocks);
}

// The same ranks in the same numbers of tensor-parallel ranks, contexts, stages and lanes.
ModuleLayout plain(const ModuleLayout& grid) {
  ModuleLayout other;
  other.tp = grid.tp;
  other.cp = grid.cp;
  other.pp = grid.pp;
  other.first_rank = grid.first_rank;
  other.ranks = grid.ranks;
  return other;
}

// Puts it into its place by listed_before(); kept no longer than `most`.
void keep_best(std::vector<Listed>& best, Listed next, std::size_t most, Seconds& rest) {
  if (best.size() >= most && !listed_before(next, best.back())) {
    rest = std::min(rest, next.bound.step);
    return;
  }
  best.insert(std::upper_bound(best.begin(), best.end(), next, listed_before), std::move(next));
  if (best.size() <= most) return;
  rest = std::min(rest, best.back().bound.step);
  best.pop_back();
}

}  // namespace

bool simpler(const Layout& a, const Layout& b) {
  const auto whole = [](const Layout& layout) {
    return std::tuple(layout.placement, layout.schedule == ScheduleKind::one_f_one_b ? 0 : 1,
                      layout.schedule, layout.bridge, layout.encoder_microbatches,
                      layout.microbatches);
  };
  if (whole(a) != whole(b)) return whole(a) < whole(b);
  for (std::size_t m = a.modules.size(); m-- > 0;)
    if (key_of(a.modules[m]) != key_of(b.modules[m]))
      return key_of(a.modules[m]) < key_of(b.modules[m]);
  return false;
}

bool listed_before(const Listed& a, const Listed& b) {
  if (a.bound.step != b.bound.step) return a.bound.step < b.bound.step;
  if (a.bound.footprint.memory != b.bound.footprint.memory)
    return a.bound.footprint.memory < b.bound.footprint.memory;
  return simpler(a.layout, b.layout);
}

Lister::Lister(const Scenario& scenario, const Space& space, const HardwareProfile& profile,
               const Batch& batch)
    : scenario_(scenario), space_(space), screen_(scenario, profile, batch) {
  divisions_ = space.divisions(rejections_);
  for (std::size_t d = 0; d < divisions_.size(); ++d) {
    const Division& division = divisions_[d];
    Grids grids;
    double others = 1;
    for (std::size_t o = 0; o < space.owners().size(); ++o) {
      const bool own = o == space.language() || !Space::one_grid(division);
      grids.by_owner.push_back(own ? space.grids(division, o, rejections_)
                                   : std::vector<ModuleLayout>(1));
      if (o != space.language()) others *= static_cast<double>(grids.by_owner.back().size());
    }
    grids_.push_back(std::move(grids));
    const std::vector<ModuleLayout>& of = grids_.back().by_owner[space.language()];
    if (others == 0) continue;
    for (std::size_t begin = 0; begin < of.size();) {
      std::size_t end = begin;
      const auto same = [&](const ModuleLayout& grid) {
        return grid.tp == of[begin].tp && grid.cp == of[begin].cp && grid.pp == of[begin].pp;
      };
      // Drives depend on pp, vpp and lanes alone.
      std::map<int, double> drives;
      Rejections none;
      for (; end < of.size() && same(of[end]); ++end) {
        const auto [known, added] = drives.try_emplace(of[end].vpp);
        if (added)
          known->second = static_cast<double>(space.drives(division, of[end], none).size());
        combinations_ += others * known->second;
      }
      units_.push_back({d, begin, end});
      begin = end;
    }
  }
}

void Lister::look(const Layout& layout, const ListerOptions& options, Seconds limit,
                  Shortlist& list, Rejections& rejections) {
  if (const auto why = check_layout(scenario_, layout))
    return rejections.add(layout.placement, why->reason);
  ++list.legal;
  const Bytes capacity = scenario_.cluster.device.memory;
  if (capacity.value > 0) {
    // Most do not fit, and this is the cheap half.
    const Footprint footprint = screen_.footprint(layout);
    if (footprint.memory > capacity) {
      ++list.too_large;
      Listed misfit{layout, {}};
      misfit.bound.footprint = footprint;
      if (!list.misfit || listed_before(misfit, *list.misfit)) list.misfit = std::move(misfit);
      return;
    }
  }
  recompute_less(layout, options, limit, list);
  Listed next{layout, screen_.bound(layout)};
  if (next.bound.step > limit) {
    ++list.beaten;
    list.rest = std::min(list.rest, next.bound.step);
    return;
  }
  keep_best(list.best, std::move(next), options.keep, list.rest);
}

Layout Lister::at_ease(const Layout& layout) const {
  Layout eased = layout;
  for (ModuleLayout& grid : eased.modules) {
    const Recompute kind = std::exchange(grid.recompute, Recompute::none);
    if (kind != Recompute::none && !space_.allows(eased)) grid.recompute = kind;
  }
  return eased;
}

// What the layout that recomputes nothing could not do with all the memory there is, none between it
// and this one does.
void Lister::recompute_less(const Layout& layout, const ListerOptions& options, Seconds limit,
                            Shortlist& list) {
  const Bytes capacity = scenario_.cluster.device.memory;
  const Layout none = at_ease(layout);
  if (capacity.value == 0 || none == layout) return;
  if (screen_.footprint(none).memory <= capacity) return;
  const bool full = list.best.size() >= options.keep;
  if (screen_.bound(none).step > (full ? std::min(limit, list.best.back().bound.step) : limit))
    return;
  const std::optional<Layout> less = least_recompute(scenario_, layout, none, capacity, screen_);
  if (!less) return;
  Seconds not_of_the_lists{};  // what is left out of these is no one's gap
  Listed next{*less, screen_.bound(*less)};
  if (next.bound.step <= limit)
    keep_best(list.best, std::move(next), options.keep, not_of_the_lists);
}

const std::vector<ModuleLayout>& Lister::front(const Unit& unit, std::size_t owner,
                                               const Drive& drive,
                                               const std::vector<ModuleLayout>& grids,
                                               const ListerOptions& options) {
  const std::vector<ModuleLayout>& all = grids_[unit.division].by_owner[owner];
  if (options.encoders == 0 || Space::one_grid(divisions_[unit.division])) return all;
  const Division& division = divisions_[unit.division];
  // What else the language module does says nothing of an encoder.
  std::vector<ModuleLayout> tried = grids;
  ModuleLayout& language = tried[space_.language()];
  language = plain(language);
  // Encoders on the same ranks have one pp: those before it have chosen, those after it follow.
  int shared_pp = 0;
  std::vector<std::size_t> following;
  for (std::size_t o = 0; o < grids.size(); ++o) {
    if (o == owner || o == space_.language() || division.ranks[o] != division.ranks[owner])
      continue;
    if (o < owner)
      shared_pp = grids[o].pp;
    else
      following.push_back(o);
  }
  const auto [known, added] =
      fronts_.try_emplace(FrontKey{unit.division, owner, drive.microbatches,
                                   drive.encoder_microbatches, language.pp, shared_pp});
  if (!added) return known->second;
  struct Each {
    PartBound part;
    ModuleLayout grid;
  };
  std::vector<Each> found;
  Drive plain_drive = drive;
  plain_drive.schedule = ScheduleKind::one_f_one_b;
  const Bytes capacity = scenario_.cluster.device.memory;
  for (const ModuleLayout& grid : all) {
    tried[owner] = grid;
    for (const std::size_t o : following) {
      tried[o] = ModuleLayout{};
      tried[o].pp = grid.pp;
      tried[o].first_rank = grid.first_rank;
      tried[o].ranks = grid.ranks;
    }
    const Layout layout = space_.assemble(division, tried, plain_drive);
    if (check_layout(scenario_, layout)) continue;
    const PartBound part = screen_.part(layout, space_.owners()[owner]);
    if (capacity.value > 0 && part.memory > capacity) continue;
    found.push_back({part, grid});
  }
  std::sort(found.begin(), found.end(), [](const Each& a, const Each& b) {
    if (a.part.step != b.part.step) return a.part.step < b.part.step;
    if (a.part.memory != b.part.memory) return a.part.memory < b.part.memory;
    return key_of(a.grid) < key_of(b.grid);
  });
  Bytes least{std::numeric_limits<std::int64_t>::max()};
  for (const Each& each : found) {
    if (each.part.memory >= least) continue;
    least = each.part.memory;
    known->second.push_back(each.grid);
    if (known->second.size() == options.encoders) break;
  }
  return known->second;
}

void Lister::combine(const Unit& unit, const Drive& drive, std::vector<ModuleLayout>& grids,
                     std::size_t owner, const ListerOptions& options, Seconds limit,
                     Shortlist& list, Rejections& rejections) {
  if (owner == grids.size())
    return look(space_.assemble(divisions_[unit.division], grids, drive), options, limit, list,
                rejections);
  if (owner == space_.language())
    return combine(unit, drive, grids, owner + 1, options, limit, list, rejections);
  for (const ModuleLayout& grid : front(unit, owner, drive, grids, options)) {
    grids[owner] = grid;
    combine(unit, drive, grids, owner + 1, options, limit, list, rejections);
  }
}

Shortlist Lister::list(const Unit& unit, const ListerOptions& options) {
  const Division& division = divisions_[unit.division];
  const std::vector<std::vector<ModuleLayout>>& choices = grids_[unit.division].by_owner;
  const auto known_limit = options.limits.find(division.placement);
  const Seconds limit = known_limit != options.limits.end()
                            ? known_limit->second
                            : Seconds(std::numeric_limits<double>::infinity());
  std::int64_t others = 1;
  std::vector<ModuleLayout> grids;
  for (std::size_t o = 0; o < choices.size(); ++o) {
    grids.push_back(choices[o].front());
    if (o != space_.language()) others *= static_cast<std::int64_t>(choices[o].size());
  }
  Shortlist list;
  Rejections rejections;
  const bool parts = !Space::one_grid(division) && grids.size() > 1;
  const Bytes capacity = scenario_.cluster.device.memory;
  const ModuleId language = space_.owners()[space_.language()];
  for (std::size_t i = unit.begin; i < unit.end; ++i) {
    const ModuleLayout& grid = choices[space_.language()][i];
    grids[space_.language()] = grid;
    // Of one schedule larger microbatches hold no less: from the smallest that does not fit on, the
    // others of its schedule are not looked at.
    std::optional<ScheduleKind> full;
    // Work is the same for all schedules that place stages alike: what is too slow is so once.
    using Place = decltype(Schedule::place);
    std::vector<std::pair<int, Place>> slow;
    for (const Drive& drive : space_.drives(division, grid, rejections)) {
      list.considered += others;
      if (full == drive.schedule) {
        list.too_large += others;
        continue;
      }
      const std::pair<int, Place> work{drive.microbatches, schedule(drive.schedule).place};
      if (std::find(slow.begin(), slow.end(), work) != slow.end()) {
        list.beaten += others;
        continue;
      }
      const Layout layout = parts ? space_.assemble(division, grids, drive) : Layout{};
      if (parts && !check_layout(scenario_, layout)) {
        // Whatever the others' grids are, the language module's ranks take this long and hold this.
        const PartBound part = screen_.part(layout, language);
        if (capacity.value > 0 && part.memory > capacity) {
          list.too_large += others;
          if (drive.encoder_microbatches == 0) full = drive.schedule;
          continue;
        }
        const Seconds least = std::min(part.step, screen_.part(at_ease(layout), language).step);
        if (least > limit) {
          list.beaten += others;
          list.rest = std::min(list.rest, part.step);
          slow.push_back(work);
          continue;
        }
      }
      const std::int64_t large = list.too_large;
      combine(unit, drive, grids, 0, options, limit, list, rejections);
      if (!parts && list.too_large > large) full = drive.schedule;
      grids[space_.language()] = grid;
    }
  }
  list.rejections = rejections.all();
  return list;
}

}  // namespace polyphony
