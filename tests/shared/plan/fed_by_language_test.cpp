// Layouts of a model whose language module feeds another: their Programs must be able to run.
#include <doctest/doctest.h>

#include "shared/plan/lower.h"
#include "shared/program/compile.h"
#include "shared/scenario/typical_batch.h"
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

TEST_CASE("encoders run as far ahead as an interleaved pipeline that feeds another asks") {
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

TEST_CASE("what a language module feeds cannot have an encoder's ranks") {
  const Scenario scenario = test::scenario_at("scenarios/tiny_all.json");
  Layout layout = apart(scenario, 2);
  layout.placement = Placement::mixed;
  CHECK_FALSE(check_layout(scenario, layout));
  grid_of(scenario.model, layout, "diffusion").first_rank = 1;  // audio's
  const auto no = check_layout(scenario, layout);
  REQUIRE(no);
  CHECK(no->reason ==
        "diffusion: cannot share the ranks of audio, whose rows it waits for through language, but "
        "in a homogeneous layout; give it ranks of its own");
}

}  // namespace polyphony
