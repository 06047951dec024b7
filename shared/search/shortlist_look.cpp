// What one layout comes to in a shortlist: does it fit, how do its ranks attend, what must it recompute.
#include <algorithm>
#include <utility>

#include "shared/plan/plan.h"
#include "shared/search/choices.h"
#include "shared/search/least_recompute.h"
#include "shared/search/shortlist.h"

namespace polyphony {
namespace {

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

// Of one work of the whole share of a lane: how often it runs is the same for all.
void Lister::choose_way(const Division& division, ModuleLayout& grid) {
  if (grid.cp == 1) return;
  const WayKey key{grid.tp,        grid.cp,        grid.ep,     grid.expert_tp, grid.sp,
                   grid.tp_pieces, grid.recompute, grid.tokens, grid.first_rank};
  if (const auto known = ways_.find(key); known != ways_.end()) {
    grid.cp_attention = known->second;
    return;
  }
  std::vector<ModuleLayout> grids;
  for (const RankRange& ranks : division.ranks) grids.push_back(plain(ranks));
  ModuleLayout& language = grids[space_.language()];
  language = grid;
  language.vpp = 1;
  Rejections none;
  const std::vector<Drive> drives = space_.drives(division, language, none);
  std::optional<Seconds> least;
  for (const ContextAttention way : all_of<ContextAttention>())
    for (const Drive& drive : drives) {
      language.cp_attention = way;
      const Layout layout = space_.assemble(division, grids, drive);
      if (check_layout(scenario_, layout)) continue;
      const Seconds step = screen_.part(layout, space_.owners()[space_.language()]).step;
      if (!least || step < *least) {
        least = step;
        grid.cp_attention = way;
      }
      break;  // the same for all ways
    }
  if (least) ways_.emplace(key, grid.cp_attention);
}

// As it is, or with keys that go round, which are held a rank's at a time.
bool Lister::fits(Task& task, Layout& layout) {
  const Bytes capacity = scenario_.memory_limit();
  if (capacity.value == 0) return true;
  // Most do not fit, and this is the cheap half.
  const Footprint footprint = screen_.footprint(layout);
  if (footprint.memory <= capacity) return true;
  const std::size_t owner = space_.owners()[space_.language()].value;
  const ModuleLayout& grid = layout.modules[owner];
  if (choose_ways_ && grid.cp > 1 && grid.recompute != Recompute::full &&
      grid.cp_attention != ContextAttention::ring) {
    Layout round = layout;
    round.modules[owner].cp_attention = ContextAttention::ring;
    if (!check_layout(scenario_, round) && screen_.footprint(round).memory <= capacity) {
      layout = std::move(round);
      return true;
    }
  }
  Shortlist& list = task.list;
  ++list.too_large;
  Listed misfit{layout, {}};
  misfit.bound.footprint = footprint;
  if (!list.misfit || listed_before(misfit, *list.misfit)) list.misfit = misfit;
  if (footprint.least > capacity || is_split(scenario_.model, layout)) return false;
  misfit.bound = screen_.bound(layout);
  Seconds others{};  // what does not fit is no one's gap
  if (misfit.bound.step <= task.limit)
    keep_best(list.tight, std::move(misfit), task.options.tight, others);
  return false;
}

void Lister::look(Task& task, Layout layout) {
  Shortlist& list = task.list;
  if (const auto why = check_layout(scenario_, layout))
    return task.rejections.add(layout.placement, why->reason);
  ++list.legal;
  if (!fits(task, layout)) return;
  list.fits = true;
  recompute_less(task, layout);
  Listed next{layout, screen_.bound(layout)};
  if (next.bound.step > task.limit) {
    ++list.beaten;
    list.rest = std::min(list.rest, next.bound.step);
    return;
  }
  keep_best(list.best, std::move(next), task.options.keep, list.rest);
}

bool Lister::allowed(Layout layout) const {
  if (choose_ways_)  // the way that stands for all
    layout.modules[space_.owners()[space_.language()].value].cp_attention =
        ContextAttention::all_gather;
  return space_.allows(layout);
}

Layout Lister::at_ease(const Layout& layout) const {
  Layout eased = layout;
  for (ModuleLayout& grid : eased.modules) {
    const Recompute kind = std::exchange(grid.recompute, Recompute::none);
    if (kind != Recompute::none && !allowed(eased)) grid.recompute = kind;
  }
  return eased;
}

// What the layout that recomputes nothing could not do with all the memory there is, none between it
// and this one does.
void Lister::recompute_less(Task& task, const Layout& layout) {
  Shortlist& list = task.list;
  const Bytes capacity = scenario_.memory_limit();
  const Layout none = at_ease(layout);
  if (capacity.value == 0 || none == layout) return;
  if (screen_.footprint(none).memory <= capacity) return;
  const bool full = list.best.size() >= task.options.keep;
  const Seconds limit = full ? std::min(task.limit, list.best.back().bound.step) : task.limit;
  if (screen_.bound(none).step > limit) return;
  const std::optional<Layout> less = least_recompute(scenario_, layout, none, capacity, screen_);
  if (!less) return;
  Seconds not_of_the_lists{};  // what is left out of these is no one's gap
  Listed next{*less, screen_.bound(*less)};
  if (next.bound.step <= task.limit)
    keep_best(list.best, std::move(next), task.options.keep, not_of_the_lists);
}

}  // namespace polyphony
