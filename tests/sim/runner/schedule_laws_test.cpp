// The laws of prediction on every named schedule: bound ≤ estimate ≤ simulate.
#include <doctest/doctest.h>

#include "shared/check/check.h"
#include "shared/cost/cost_model.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "shared/screen/bound.h"
#include "shared/verify/verify.h"
#include "sim/runner/simulate.h"
#include "tests/shared/support/example_models.h"

namespace polyphony::tests {
namespace {

// A language module alone, with samples of equal length.
Scenario text_only(int ranks, int tokens) {
  Scenario scenario = examples::small_on_cpu(ranks, 4 * ranks);
  scenario.model = {{scenario.model.modules.back()}, {}};
  scenario.model.modules[0].layers = 2 * ranks;
  scenario.data.source =
      SyntheticData{examples::always(0), examples::always(tokens), examples::always(2)};
  return scenario;
}

}  // namespace

TEST_CASE("bound, estimate and simulate of every schedule") {
  for (const Schedule& row : kSchedules)
    for (const int pp : {2, 4})
      for (const int vpp : {1, 2})
        for (const int tokens : {8, 512}) {
          ModuleLayout grid;
          grid.ranks = grid.pp = pp;
          grid.vpp = vpp;
          const Layout layout{.placement = Placement::homogeneous,
                              .modules = {grid},
                              .schedule = row.kind,
                              .microbatches = 4 * pp};
          const Scenario scenario = text_only(pp, tokens);
          if (check_layout(scenario, layout)) continue;
          CAPTURE(row.name);
          CAPTURE(pp);
          CAPTURE(vpp);
          CAPTURE(tokens);
          const HardwareProfile profile = *shipped_profile(scenario.cluster);
          const Program program =
              lower(scenario, layout, make_plan(scenario, layout), typical_batch(scenario));
          REQUIRE(verify(program).empty());
          const Compiled compiled = std::get<Compiled>(compile(program));
          const CostTable costs = price(program, compiled, scenario.cluster, profile);
          const Seconds estimated = estimate(program, compiled, costs).step();
          const auto simulated = sim::simulate(program, compiled, costs);
          REQUIRE(std::holds_alternative<Timeline>(simulated));
          Screen screen(scenario, profile, typical_batch(scenario));
          CHECK(screen.bound(layout).step <= estimated);
          CHECK(estimated <= std::get<Timeline>(simulated).makespan * (1 + 1e-9));
        }
}

}  // namespace polyphony::tests
