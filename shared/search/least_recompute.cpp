#include "shared/search/least_recompute.h"

#include <algorithm>
#include <vector>

#include "shared/check/check.h"

namespace polyphony {
namespace {

// Returns the layout in which only the first `count` blocks of these modules, one module after the
// other, recompute as they do in `from`.
Layout first_blocks(const Scenario& scenario, const Layout& from,
                    const std::vector<std::size_t>& modules, int count) {
  Layout layout = from;
  for (const std::size_t m : modules) {
    const int blocks = scenario.model.modules[m].layers, own = std::min(count, blocks);
    ModuleLayout& grid = layout.modules[m];
    grid.recompute_blocks.clear();
    if (own == 0) grid.recompute = Recompute::none;
    if (own > 0 && own < blocks) grid.recompute_blocks = {0, own};
    count -= own;
  }
  return layout;
}

}  // namespace

std::optional<Layout> least_recompute(const Scenario& scenario, const Layout& layout,
                                      const Layout& none, Bytes capacity, Screen& screen) {
  std::vector<std::vector<std::size_t>> parts;
  const std::size_t language = language_module(scenario.model).value;
  for (std::size_t m = 0; m < layout.modules.size(); ++m) {
    if (layout.modules[m].recompute == none.modules[m].recompute) continue;
    if (scenario.model.modules[m].layers == 0) continue;  // a projector
    if (layout.placement == Placement::homogeneous && !parts.empty())
      parts.front().push_back(m);
    else
      parts.insert(m == language ? parts.begin() : parts.end(), {m});
  }
  Layout least = layout;
  for (const std::vector<std::size_t>& modules : parts) {
    int enough = 0;  // the fewest blocks known to fit
    for (const std::size_t m : modules) enough += scenario.model.modules[m].layers;
    for (int less = -1; enough - less > 1;) {
      const int middle = less + (enough - less) / 2;
      const Layout tried = first_blocks(scenario, least, modules, middle);
      const bool fits =
          !check_layout(scenario, tried) && screen.footprint(tried).memory <= capacity;
      (fits ? enough : less) = middle;
    }
    if (enough == 0) return {};
    least = first_blocks(scenario, least, modules, enough);
  }
  if (least == layout) return {};
  return least;
}

std::vector<Layout> recompute_more(const Scenario& scenario, const Space& space,
                                   const Layout& layout, Bytes target, Screen& screen) {
  const ModuleId language = language_module(scenario.model);
  std::vector<Layout> found;
  for (const Recompute kind : {Recompute::selective, Recompute::full}) {
    Layout all = layout, none = layout;
    bool other_kind = false;
    for (std::size_t m = 0; m < layout.modules.size(); ++m) {
      const ModuleLayout& grid = layout.modules[m];
      const bool resting = grid.recompute == Recompute::none &&
                           (layout.placement == Placement::homogeneous || ModuleId(m) == language);
      const bool partly = !grid.recompute_blocks.empty();
      if (scenario.model.modules[m].layers == 0 || (!resting && !partly)) continue;
      other_kind = other_kind || (partly && grid.recompute != kind);
      all.modules[m].recompute = kind;
      none.modules[m].recompute = Recompute::none;
      all.modules[m].recompute_blocks.clear();
      none.modules[m].recompute_blocks.clear();
    }
    if (other_kind || all == none || !space.allows(all) || !space.allows(none)) continue;
    if (check_layout(scenario, all) || screen.footprint(all).memory > target) continue;
    if (auto least = least_recompute(scenario, all, none, target, screen))
      found.push_back(std::move(*least));
  }
  return found;
}

}  // namespace polyphony
