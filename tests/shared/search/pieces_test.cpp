// GEMMs split into chunks (ModuleLayout::tp_pieces) as a search's choice.
#include <doctest/doctest.h>

#include <map>

#include "shared/check/check.h"
#include "shared/search/space.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {

TEST_CASE("tp_pieces: only where a search lists them, for tensor-parallel ranks") {
  Scenario scenario = examples::small_on_cpu(4, 8);
  scenario.search = examples::few_choices(3);
  scenario.search->placement = {Placement::homogeneous};
  scenario.search->microbatch = {1};
  for (ModuleSearch& module : scenario.search->modules) {
    module.recompute = {Recompute::none};
    module.shard = {Shard::none};
  }
  // Over 4 ranks (tp, pp, dp): (1,1,4) (1,2,2) (1,4,1), (2,1,2) (2,2,1) (4,1,1). Then by tp_pieces.
  using Counts = std::map<int, int>;
  const auto counted = [&](std::vector<int> list) {
    scenario.search->modules.back().tp_pieces = std::move(list);
    Counts counts;
    for (const Layout& layout : candidates(scenario)) ++counts[layout.modules.back().tp_pieces];
    return counts;
  };
  CHECK(counted({}) == Counts{{1, 6}});
  CHECK(counted({1, 2, 4}) == Counts{{1, 6}, {2, 3}, {4, 3}});
  CHECK(counted({4, 1, 2}) == Counts{{1, 6}, {2, 3}, {4, 3}});
  CHECK(counted({2}) == Counts{{1, 3}, {2, 3}});
  const auto allowed = [&](int tp, int pieces) {
    Layout layout;
    layout.modules.resize(3);
    for (ModuleLayout& grid : layout.modules) {
      grid.tp = tp;
      grid.tp_pieces = pieces;
      grid.ranks = 4;
    }
    layout.microbatches = 8 / (4 / tp);
    REQUIRE_FALSE(check_layout(scenario, layout));
    return Space(scenario).allows(layout);
  };
  CHECK(allowed(2, 2));
  CHECK_FALSE(allowed(2, 1));
  CHECK(allowed(1, 1));
  scenario.search->modules.back().tp_pieces = {};
  CHECK(allowed(2, 1));
  CHECK_FALSE(allowed(2, 2));
}

}  // namespace polyphony
