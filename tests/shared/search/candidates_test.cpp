// What a search proposes and refuses, counted by hand.
#include <doctest/doctest.h>

#include <algorithm>

#include "shared/search/space.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {
namespace {

int count(const std::vector<Layout>& layouts, Placement placement) {
  return static_cast<int>(std::count_if(layouts.begin(), layouts.end(), [&](const Layout& layout) {
    return layout.placement == placement;
  }));
}

}  // namespace

TEST_CASE("candidates: counts by hand") {
  Scenario scenario = examples::small_on_cpu(4, 8);
  ModuleSearch language;
  language.recompute = {Recompute::none};
  language.shard = {Shard::none};
  scenario.search =
      Search{.placement = {}, .modules = {{}, {}, language}, .schedule = {}, .microbatch = {1}};
  const std::vector<Layout> layouts = candidates(scenario);
  // Homogeneous over 4 ranks: tp·pp·dp = 4: (1,1) (1,2) (1,4) (2,1) (2,2) (4,1).
  CHECK(count(layouts, Placement::homogeneous) == 6);
  // Colocated: those, for each encoder tp of 1, 2, 4; the encoder in 1, 2, 4 or 8 parts where pp >
  // 1: as far as they divide 4 microbatches of (1,2), 8 of (1,4) and of (2,2).
  CHECK(count(layouts, Placement::colocated) == 3 * (3 + 3 + 4 + 4));
  // Non-colocated: encoder on 1 rank (tp 1): language on 3: tp 1 × pp 1, 3. Encoder on 2 ranks (tp
  // 1, 2): language on 2: (1,1) (1,2) (2,1).
  CHECK(count(layouts, Placement::non_colocated) == 2 + 2 * 3);
}

TEST_CASE("refusals are counted by reason") {
  Scenario scenario = examples::small_on_cpu(4, 8);
  ModuleSearch language;
  language.tp = {1, 3, 8};
  language.pp = {1, 3};
  language.recompute = {Recompute::none, Recompute::selective};
  language.shard = {Shard::none};
  scenario.search = Search{.placement = {Placement::homogeneous},
                           .modules = {{}, {}, language},
                           .schedule = {},
                           .microbatch = {2}};
  std::vector<Rejection> rejected;
  const std::vector<Layout> layouts = candidates(scenario, &rejected);
  CHECK(layouts.size() == 2);  // tp 1, pp 1, without and with recomputation
  REQUIRE(rejected.size() == 2);
  // In order: tp 1 × pp 3; tp 3 and 8 with each pp.
  CHECK(rejected[0].count == 1);
  CHECK(rejected[0].example.find("tp·pp = 3 does not divide its 4 ranks") != std::string::npos);
  CHECK(rejected[1].count == 4);
  CHECK(rejected[1].example.find("tp 3 does not divide a node's 4 ranks") != std::string::npos);
}

}  // namespace polyphony
