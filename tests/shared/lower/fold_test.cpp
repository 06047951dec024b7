// A folded plan predicts the same as the unfolded one: step time, and memory of the ranks that
// represent others.
#include <doctest/doctest.h>

#include "shared/check/check.h"
#include "shared/cost/cost_model.h"
#include "shared/graph/memory.h"
#include "shared/lower/fold.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {
namespace {

struct Predicted {
  Estimate estimate;
  std::vector<RankMemory> memory;
};

Predicted predicted(const Scenario& scenario, const Layout& layout, const Plan& plan,
                    const Batch& batch) {
  const Program program = lower(scenario, layout, plan, batch);
  const Compiled compiled = std::get<Compiled>(compile(program));
  const CostTable costs =
      price(program, compiled, scenario.cluster, *find_profile("h100-roofline"));
  Predicted result{estimate(program, compiled, costs), {}};
  result.memory = predict_memory(program, result.estimate.timeline);
  return result;
}

Scenario text_on_h100(int ranks, int global_batch, bool sparse) {
  Scenario scenario = examples::small_on_cpu(ranks, global_batch);
  const ShippedDevice& h100 = *find_device("H100");
  scenario.cluster = {.device = h100.device,
                      .nodes = ranks / 4,
                      .ranks_per_node = 4,
                      .node_link = h100.node_link,
                      .fabric_link = h100.fabric_link,
                      .profile = default_profile("H100")};
  scenario.model = {{scenario.model.modules.back()}, {}};
  scenario.training.precision = NumberFormat::bf16;
  scenario.data.source =
      SyntheticData{examples::always(0), examples::always(512), examples::always(512)};
  Module& language = scenario.model.modules.front();
  if (sparse) {
    language.experts = 4;
    language.experts_per_token = 2;
    language.expert_ffn = 128;
    language.ffn = 0;
  }
  return scenario;
}

void compare(const Scenario& scenario, const Layout& layout) {
  REQUIRE_FALSE(check_layout(scenario, layout).has_value());
  const Plan plan = make_plan(scenario, layout);
  const Batch batch = typical_batch(scenario);
  const Predicted whole = predicted(scenario, layout, plan, batch);
  const auto outcome = fold(scenario, layout, plan, batch);
  REQUIRE(std::holds_alternative<Folded>(outcome));
  const Folded& kept = std::get<Folded>(outcome);
  const Predicted folded = predicted(scenario, layout, kept.plan, kept.batch);
  const ModuleLayout& grid = layout.modules.front();
  // Flows are rounded to whole bytes, closed forms are not.
  CHECK(folded.estimate.longest_path.count() ==
        doctest::Approx(whole.estimate.longest_path.count()).epsilon(1e-6));
  CHECK(folded.estimate.busiest_stream.count() ==
        doctest::Approx(whole.estimate.busiest_stream.count()).epsilon(1e-9));
  for (int p = 0; p < grid.pp; ++p) {
    const std::size_t rank = grid.rank_at(0, 0, 0, p).value;
    CHECK(folded.memory[rank].peak == whole.memory[rank].peak);
  }
}

Layout one_grid(ModuleLayout grid, int microbatches) {
  Layout layout{.placement = Placement::homogeneous, .modules = {grid}};
  layout.microbatches = microbatches;
  if (grid.vpp > 1) layout.schedule = ScheduleKind::interleaved;
  return layout;
}

}  // namespace

TEST_CASE("folded as unfolded: tensor, sequence, pipeline and data parallelism") {
  ModuleLayout grid;
  grid.ranks = 16;
  grid.tp = 2;
  grid.pp = 2;
  for (const bool sp : {false, true})
    for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::full}) {
      CAPTURE(sp);
      CAPTURE(name(shard));
      grid.sp = sp;
      grid.shard = shard;
      compare(text_on_h100(16, 32, false), one_grid(grid, 4));
    }
}

TEST_CASE("folded as unfolded: virtual stages, context parallelism, experts, recomputation") {
  ModuleLayout grid;
  grid.ranks = 16;
  grid.pp = 2;
  grid.vpp = 3;
  compare(text_on_h100(16, 32, false), one_grid(grid, 4));
  grid.vpp = 1;
  grid.recompute = Recompute::full;
  compare(text_on_h100(16, 32, false), one_grid(grid, 4));
  grid.cp = 2;
  grid.tokens = TokenAssignment::zigzag;
  compare(text_on_h100(16, 32, false), one_grid(grid, 4));
  grid = {};
  grid.ranks = 16;
  grid.ep = 4;
  compare(text_on_h100(16, 32, true), one_grid(grid, 2));
}

TEST_CASE("a layout that cannot be folded is refused with a reason") {
  Scenario scenario = text_on_h100(16, 32, false);
  ModuleLayout grid;
  grid.ranks = 16;
  const auto reason = [&](const Layout& layout) {
    const auto plan = fold(scenario, layout, make_plan(scenario, layout), typical_batch(scenario));
    REQUIRE(std::holds_alternative<Infeasible>(plan));
    return std::get<Infeasible>(plan).reason;
  };
  grid.cp = 16;
  CHECK(reason(one_grid(grid, 4)).find("no two of its ranks") != std::string::npos);
  grid.cp = 1;
  Distribution uniform{.kind = Distribution::Kind::uniform, .a = 1, .b = 9};
  scenario.data.source = SyntheticData{examples::always(0), uniform, uniform};
  CHECK(reason(one_grid(grid, 1)).find("samples differ") != std::string::npos);
  scenario.data.source =
      SyntheticData{examples::always(0), examples::always(512), examples::always(512)};
  Degraded slow;
  slow.device = 0.5;
  scenario.cluster.degraded.push_back(slow);
  CHECK(reason(one_grid(grid, 1)).find("degraded") != std::string::npos);
}

}  // namespace polyphony
