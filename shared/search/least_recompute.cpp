#include "shared/search/least_recompute.h"

#include <algorithm>
#include <vector>

#include "shared/plan/plan.h"

namespace polyphony {
namespace {

// The first `count` blocks of these modules, one module after the other, as `from` recomputes them.
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
    int enough = 0;  // and one less is not
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

}  // namespace polyphony
