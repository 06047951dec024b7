// Fully sharded layers whose experts are spread over as many ranks as there are lanes: no other
// rank has a rank's experts, so that only the rest is sharded and gathered.
#include <doctest/doctest.h>

#include "shared/check/check.h"
#include "shared/graph/compile.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "shared/verify/verify.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {
namespace {

Program lowered(int ranks, int ep) {
  Scenario scenario = examples::small_on_cpu(ranks, 8 * ranks);
  scenario.model = {{scenario.model.modules.back()}, {}};
  Module& module = scenario.model.modules[0];
  module.experts = 4;
  module.experts_per_token = 2;
  module.expert_ffn = 16;
  scenario.data.source =
      SyntheticData{examples::always(0), examples::always(6), examples::always(2)};
  ModuleLayout grid;
  grid.ep = ep;
  grid.ranks = ranks;
  grid.shard = Shard::full;
  Layout layout{.placement = Placement::homogeneous, .modules = {grid}};
  layout.microbatches = 2;
  REQUIRE(!check_layout(scenario, layout));
  return lower(scenario, layout, make_plan(scenario, layout), typical_batch(scenario));
}

// All-gathers of experts' parameters on rank 0, and of the others'.
std::pair<int, int> gathers(const Program& program) {
  std::pair<int, int> count;
  const Range ops = program.ops_of(Rank(0));
  for (std::uint32_t i = ops.begin; i < ops.end; ++i)
    if (const auto* c = std::get_if<Collective>(&program.ops[i].what);
        c && c->kind == CollectiveKind::all_gather && c->purpose == Purpose::parameters)
      ++(program.params[c->params.value].experts ? count.first : count.second);
  return count;
}

}  // namespace

TEST_CASE("fully sharded: experts that only one lane holds are not gathered") {
  for (const int ranks : {2, 4}) {
    const Program program = lowered(ranks, 2);
    const std::vector<Fault> found = verify(program);
    REQUIRE_MESSAGE(found.empty(), found.front().text);
    CHECK(std::holds_alternative<Compiled>(compile(program)));
    const auto [experts, others] = gathers(program);
    CHECK(others > 0);
    CHECK((experts > 0) == (ranks == 4));  // two lanes have each expert, or one
  }
}

}  // namespace polyphony
