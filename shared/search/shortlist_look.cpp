// Evaluates one layout for a shortlist: whether it fits in memory, which context-parallel attention
// it uses, and what it must recompute.
#include <algorithm>
#include <utility>

#include "shared/check/check.h"
#include "shared/plan/plan.h"
#include "shared/search/choices.h"
#include "shared/search/least_recompute.h"
#include "shared/search/shortlist.h"

namespace polyphony {
namespace {

// Inserts a layout in the order of listed_before(); keeps at most `most`.
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

// Chooses the kind of attention by the time of one microbatch with a lane's whole share of the
// batch. How often it runs is the same for all kinds.
void Lister::choose_context_attention(const Division& division, ModuleLayout& grid) {
  if (grid.cp == 1) return;
  const AttentionKey key{grid.tp,        grid.cp,        grid.ep,     grid.expert_tp, grid.sp,
                         grid.tp_pieces, grid.recompute, grid.tokens, grid.first_rank};
  if (const auto known = attentions_.find(key); known != attentions_.end()) {
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
      break;  // one drive is enough: the others rank the kinds in the same order
    }
  if (least) attentions_.emplace(key, grid.cp_attention);
}

// Returns whether the layout fits in memory, as it is or with ring attention, which holds the keys
// of one rank at a time (and is then set in `layout`).
bool Lister::fits(Task& task, Layout& layout) {
  const Bytes capacity = screen_.room(layout);
  if (capacity.value == 0) return true;
  // Most layouts do not fit, and the footprint is cheaper than the full bound.
  const Footprint footprint = screen_.footprint(layout);
  if (footprint.memory <= capacity) return true;
  const std::size_t owner = space_.owners()[space_.language()].value;
  const ModuleLayout& grid = layout.modules[owner];
  if (choose_attention_ && grid.cp > 1 && grid.recompute != Recompute::full &&
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
  if (!list.smallest_too_large || listed_before(misfit, *list.smallest_too_large))
    list.smallest_too_large = misfit;
  if (footprint.least > capacity || is_split(scenario_, layout)) return false;
  misfit.bound = screen_.bound(layout);
  Seconds others{};  // ignored: layouts that do not fit do not count towards Shortlist::rest
  if (misfit.bound.step <= task.limit)
    keep_best(list.may_fit_if_resplit, std::move(misfit), task.options.may_fit_if_resplit, others);
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
    ++list.pruned;
    list.rest = std::min(list.rest, next.bound.step);
    return;
  }
  keep_best(list.best, std::move(next), task.options.keep, list.rest);
}

bool Lister::allowed(Layout layout) const {
  if (choose_attention_)  // the kind that represents all in the space
    layout.modules[space_.owners()[space_.language()].value].cp_attention =
        ContextAttention::all_gather;
  return space_.allows(layout);
}

Layout Lister::without_recompute(const Layout& layout) const {
  Layout eased = layout;
  for (ModuleLayout& grid : eased.modules) {
    const Recompute kind = std::exchange(grid.recompute, Recompute::none);
    if (kind != Recompute::none && !allowed(eased)) grid.recompute = kind;
  }
  return eased;
}

// Adds a variant that recomputes less. If even the layout that recomputes nothing is too slow when
// memory is ignored, no layout between it and this one is fast enough.
void Lister::recompute_less(Task& task, const Layout& layout) {
  Shortlist& list = task.list;
  const Bytes capacity = screen_.room(layout);
  const Layout none = without_recompute(layout);
  if (capacity.value == 0 || none == layout) return;
  if (screen_.footprint(none).memory <= capacity) return;
  const bool full = list.best.size() >= task.options.keep;
  const Seconds limit = full ? std::min(task.limit, list.best.back().bound.step) : task.limit;
  // Layouts with known misses need not be slower the more they recompute.
  if (profile_.certainty.misses.empty() && screen_.bound(none).step > limit) return;
  const std::optional<Layout> less = least_recompute(scenario_, layout, none, capacity, screen_);
  if (!less) return;
  Seconds not_of_the_lists{};  // ignored: such variants do not count towards Shortlist::rest
  Listed next{*less, screen_.bound(*less)};
  if (next.bound.step <= task.limit)
    keep_best(list.best, std::move(next), task.options.keep, not_of_the_lists);
}

}  // namespace polyphony
