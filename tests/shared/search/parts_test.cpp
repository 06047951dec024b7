// The bounds of parts of a layout, which a search asks for first: never more than the whole needs.
#include <doctest/doctest.h>

#include <algorithm>

#include "shared/hardware/devices.h"
#include "shared/plan/plan.h"
#include "shared/scenario/typical_batch.h"
#include "shared/screen/bound.h"
#include "shared/search/random_layout.h"
#include "shared/search/space.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {

TEST_CASE("parts of random layouts: none needs more than the whole, parts on shared ranks add up") {
  const Scenario scenario = examples::vlm_on_h100();
  const ModuleId vision(0), language = language_module(scenario.model);
  Screen screen(scenario, *shipped_profile(scenario.cluster), typical_batch(scenario));
  int shared = 0, deep = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Placement placement = seed % 2 == 0 ? Placement::colocated : Placement::non_colocated;
    const auto layout = random_layout(scenario, placement, seed);
    if (!layout) continue;
    CAPTURE(describe(scenario.model, *layout));
    const PartBound own = screen.part(*layout, language), other = screen.part(*layout, vision);
    const Bound whole = screen.bound(*layout);
    CHECK(own.least <= own.step);
    CHECK(own.always <= own.memory);
    CHECK(own.step <= whole.step);
    CHECK(std::max(own.memory, other.memory) <= whole.footprint.memory);
    if (placement != Placement::colocated) {
      CHECK(other.step <= whole.step);
      continue;
    }
    ++shared;
    deep += layout->modules[language.value].pp > 1;
    CHECK(own.step + other.least <= whole.step);
    CHECK(own.memory + other.always <= whole.footprint.memory);
    // More than what is always resident: saved activations.
    CHECK(own.memory > own.always);
  }
  CHECK(shared > 100);
  CHECK(deep > 20);
}

TEST_CASE("a grid with more stages than blocks is refused once, not in every combination") {
  Scenario scenario = examples::small_on_cpu(8, 8);
  scenario.search = examples::few_choices(3);
  scenario.search->placement = {Placement::colocated};
  ModuleSearch& language = scenario.search->modules.back();
  const int blocks = scenario.model.modules.back().layers;
  language.tp = {1};
  language.pp = {8};
  language.vpp = {1, blocks};
  scenario.search->schedule = {ScheduleKind::interleaved, ScheduleKind::one_f_one_b};
  const Space space(scenario);
  Rejections rejections;
  const std::vector<Division> divisions = space.divisions(rejections);
  REQUIRE(divisions.size() == 1);
  for (const ModuleLayout& grid : space.grids(divisions.front(), space.language(), rejections))
    CHECK(grid.pp * grid.vpp <= blocks);
  REQUIRE_FALSE(rejections.all().empty());
  CHECK(rejections.all().front().example.find("pp·vpp must be at most the number of blocks") !=
        std::string::npos);
}

}  // namespace polyphony
