// Layouts of a model whose language module feeds another: their Programs must be able to run.
#include <doctest/doctest.h>

#include <algorithm>

#include "shared/check/check.h"
#include "shared/cost/cost_model.h"
#include "shared/graph/compile.h"
#include "shared/graph/memory.h"
#include "shared/hardware/devices.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "shared/screen/bound.h"
#include "shared/split/balanced_plan.h"
#include "shared/step/step_plan.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {
namespace {

// Of tiny_all.json.
ModuleLayout& grid_of(const Model& model, Layout& layout, const std::string& name) {
  for (std::size_t m = 0; m < model.modules.size(); ++m)
    if (model.modules[m].name == name) return layout.modules[m];
  FAIL(name);
  return layout.modules.front();
}

// One rank each for vision, audio and diffusion, `pp` for the language module.
Layout apart(const Scenario& scenario, int pp) {
  Layout layout{.placement = Placement::non_colocated, .modules = {}, .microbatches = 8};
  const Model& model = scenario.model;
  layout.modules.resize(model.modules.size());
  grid_of(model, layout, "audio").first_rank = 1;
  ModuleLayout& language = grid_of(model, layout, "language");
  language.first_rank = 2;
  language.ranks = language.pp = pp;
  grid_of(model, layout, "diffusion").first_rank = 2 + pp;
  for (std::size_t m = 0; m < model.modules.size(); ++m)
    layout.modules[m] = layout.modules[grid_owner(model, ModuleId(m)).value];
  return layout;
}

}  // namespace

TEST_CASE("encoders run as far ahead as an interleaved pipeline that feeds another requires") {
  // One stage behind six on three ranks: the first rank holds more than one forward more.
  Scenario scenario = test::scenario_at("scenarios/tiny_all.json");
  for (Module& module : scenario.model.modules)
    if (module.name == "language") module.layers = 6;
  scenario.cluster.ranks_per_node = 6;
  scenario.data.global_batch = 30;
  Layout layout = apart(scenario, 3);
  layout.microbatches = 30;
  layout.schedule = ScheduleKind::interleaved;
  grid_of(scenario.model, layout, "language").vpp = 2;
  REQUIRE_FALSE(check_layout(scenario, layout));
  const Program program =
      lower(scenario, layout, make_plan(scenario, layout), typical_batch(scenario));
  CHECK(std::holds_alternative<Compiled>(compile(program)));
}

TEST_CASE("a module fed by the language module is the last virtual stage of its ranks") {
  Scenario scenario = test::scenario_at("scenarios/tiny_all.json");
  Layout layout = apart(scenario, 2);  // 0: vision, 1: audio, 2 and 3: language
  layout.placement = Placement::mixed;
  layout.microbatches = 2;
  ModuleLayout& diffusion = grid_of(scenario.model, layout, "diffusion");
  diffusion.first_rank = 2;
  diffusion.ranks = 2;
  const auto refused = [&] { return check_layout(scenario, layout).value().reason; };
  CHECK(refused() ==
        "diffusion: cannot share the ranks of language, which feeds it, except in a homogeneous "
        "layout or with encoder_order interleaved; give it ranks of its own");
  layout.encoder_order = EncoderOrder::interleaved;
  CHECK(refused() ==
        "diffusion: encoder_order interleaved joins it into one pipeline with language; use the "
        "same pp, 2");
  diffusion.pp = 2;
  REQUIRE_FALSE(check_layout(scenario, layout));
  const Plan plan = make_plan(scenario, layout);
  // Interleaved 1F1B of two ranks, two chunks each, two microbatches: warm-ups of four and two
  // forwards. Branch 2 is the language module's, 3 what it feeds; each has a stage a rank.
  const auto text = [&](int rank) {
    std::string actions;
    for (const Action& action : actions_of(layout, plan, rank))
      actions += std::string(1, letter(action.kind)) + (action.branch == 2 ? "l" : "d") +
                 std::to_string(action.stage) + "." + std::to_string(action.work) + " ";
    return actions;
  };
  CHECK(text(2) == "Fl0.0 Fl0.1 Fd0.0 Fd0.1 Bd0.0 Bd0.1 Bl0.0 Bl0.1 ");
  CHECK(text(3) == "Fl1.0 Fl1.1 Fd1.0 Bd1.0 Fd1.1 Bd1.1 Bl1.0 Bl1.1 ");
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  // Encoders on ranks of their own run as far ahead as that requires, so that no rank deadlocks.
  for (const int microbatches : {2, 4, 8})
    for (const int vpp : {1, 2}) {
      layout.microbatches = microbatches;
      grid_of(scenario.model, layout, "language").vpp = vpp;
      layout.schedule = vpp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
      REQUIRE_FALSE(check_layout(scenario, layout));
      const Batch batch = typical_batch(scenario);
      const Program program =
          lower(scenario, layout, balanced_plan(scenario, layout, profile), batch);
      const auto compiled = compile(program);
      REQUIRE(std::holds_alternative<Compiled>(compiled));
      // The bound of a search is below that and close to it.
      const auto& graph = std::get<Compiled>(compiled);
      const Estimate high =
          estimate(program, graph, price(program, graph, scenario.cluster, profile));
      const Bound low = Screen(scenario, profile, batch).bound(layout);
      CHECK(low.step <= high.step());
      CHECK(low.step > high.step() * 0.5);
      Bytes most{};
      for (const RankMemory& rank : predict_memory(program, high.timeline))
        most = std::max(most, rank.peak);
      CHECK(double(low.footprint.memory.value) == doctest::Approx(double(most.value)).epsilon(0.1));
    }
}

TEST_CASE("a module fed by the language module cannot be on an encoder's ranks") {
  const Scenario scenario = test::scenario_at("scenarios/tiny_all.json");
  Layout layout = apart(scenario, 2);
  layout.placement = Placement::mixed;
  CHECK_FALSE(check_layout(scenario, layout));
  grid_of(scenario.model, layout, "diffusion").first_rank = 1;  // audio's
  const auto no = check_layout(scenario, layout);
  REQUIRE(no);
  CHECK(no->reason ==
        "diffusion: cannot share the ranks of audio, whose rows it waits for through language, "
        "except in a homogeneous layout; give it ranks of its own");
}

}  // namespace polyphony
