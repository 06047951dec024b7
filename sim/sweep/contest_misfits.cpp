#include "shared/search/least_recompute.h"
#include "shared/split/balanced_plan.h"
#include "sim/sweep/contest.h"

namespace polyphony::sim {

// Adds candidates with more recomputation, or another split, in place of one that does not fit. A
// Program needs some memory that the screen does not count (libraries, transfers), so the screen's
// memory of the new candidates must be lower by that amount. This ends, because it decreases from
// each to the next.
void Contest::recompute_more(std::size_t misfit) {
  const Candidate& c = candidates_[misfit];
  if (!c.why_not.empty() || fits(c)) return;
  const Bytes unseen = c.figures.needed_memory() - c.bound.footprint.memory;
  const Bytes target = question_.scenario.memory_limit() - unseen;
  for (const Layout& next :
       polyphony::recompute_more(question_.scenario, space_, c.layout, target, screen_))
    position(next, screen_.bound(next));
  Layout even = c.layout;
  for (ModuleLayout& grid : even.modules) grid.blocks.clear();
  if (const auto split = fitting_form(even, target)) position(*split, screen_.bound(*split));
}

std::optional<Layout> Contest::fitting_form(const Layout& layout, Bytes room) {
  if (options_.runnable_form) {
    std::optional<Layout> form = options_.runnable_form(*question_.inputs, layout);
    if (form != layout) return form;
  }
  return fitting_split(question_.scenario, layout, question_.profile, question_.sizes, room,
                       screen_);
}

void Contest::split_misfits(Placement placement, std::size_t tries, std::int64_t ops,
                            double within) {
  constexpr std::size_t kAtOnce = 8;  // new splits estimated at once, before the best is updated
  std::size_t found = 0;
  for (const Listed& kept : may_fit_if_resplit_) {
    const Layout& layout = kept.layout;
    if (layout.placement != placement) continue;
    if (tries-- == 0 || stopped()) break;
    if (kept.bound.step.count() >= best(placement).count() * (1 - within)) break;
    const auto split = fitting_form(layout, screen_.room(layout));
    if (!split) continue;
    position(*split, screen_.bound(*split));
    if (++found % kAtOnce == 0) estimate_best(placement, ops, within);
  }
  if (found > 0) estimate_best(placement, ops, within);
}

}  // namespace polyphony::sim
