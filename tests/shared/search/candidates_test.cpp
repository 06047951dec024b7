// The layouts that a search proposes and refuses, counted by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "shared/check/check.h"
#include "shared/graph/library_memory.h"
#include "shared/scenario/typical_batch.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/search/shortlist.h"
#include "shared/search/space.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {
namespace {

int count(const std::vector<Layout>& layouts, Placement placement) {
  return static_cast<int>(std::count_if(layouts.begin(), layouts.end(), [&](const Layout& layout) {
    return layout.placement == placement;
  }));
}

constexpr const char* kEncoders =
    R"("vision": {"layers": 2, "hidden": 64, "heads": 8, "ffn": 128, "patch": 4, "image_size": 16},
       "projector": {"from": "vision", "merge": "2x2"},
       "audio": {"layers": 2, "hidden": 64, "heads": 8, "ffn": 128, "mel_bins": 8, "audio_tokens": 8},
       "audio_projector": {"kind": "projector", "from": "audio", "merge": 2, "hidden": 0},
       "language": {"from": ["projector", "audio_projector"], "layers": 4, "hidden": 128,
                    "heads": 8, "kv_heads": 8, "ffn": 256, "vocab": 512})";
constexpr const char* kDiffusion =
    R"(, "diffusion": {"from": "language", "layers": 2, "hidden": 64, "heads": 8, "ffn": 128,
                       "patch": 2, "latent_channels": 4, "latent_tokens": 16})";

// On 8 ranks, few choices.
Scenario with_encoders(const std::string& model, const std::string& data) {
  Scenario scenario = read_scenario(R"({"polyphony": 1, "model": {)" + model + R"(},
          "cluster": {"node": "hgx-h100"}, "training": {"precision": "bf16"},
          "data": {"source": "synthetic", "text": {"tokens": 64}, "images": {"per_sample": 1},
                   "audio": {"per_sample": 2}, )" +
                                        data + R"("global_batch": 8}})",
                                    "encoders.json", test::file_text);
  scenario.search = examples::few_choices(scenario.model.modules.size());
  scenario.search->microbatch = {1};
  return scenario;
}

}  // namespace

TEST_CASE("candidates: counts by hand") {
  Scenario scenario = examples::small_on_cpu(4, 8);
  scenario.search = examples::few_choices(3);
  scenario.search->microbatch = {1};
  for (ModuleSearch& module : scenario.search->modules) {
    module.recompute = {Recompute::none};
    module.shard = {Shard::none};
  }
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
  scenario.search = examples::few_choices(3);
  scenario.search->placement = {Placement::homogeneous};
  scenario.search->microbatch = {2};
  ModuleSearch& language = scenario.search->modules.back();
  language.tp = {1, 3, 8};
  language.pp = {1, 3};
  language.recompute = {Recompute::none, Recompute::selective};
  language.shard = {Shard::none};
  std::vector<Rejection> rejected;
  const std::vector<Layout> layouts = candidates(scenario, &rejected);
  CHECK(layouts.size() == 2);  // tp 1, pp 1, without and with recomputation
  REQUIRE(rejected.size() == 2);
  // In order: tp 1 × pp 3; tp 3 and 8.
  CHECK(rejected[0].count == 1);
  CHECK(rejected[0].example.find("tp·cp·pp = 3 does not divide its 4 ranks") != std::string::npos);
  CHECK(rejected[1].count == 2);
  CHECK(rejected[1].example.find("tp 3 does not divide a node's 4 ranks") != std::string::npos);
}

TEST_CASE("a space holds every legal layout once, whatever the order of its lists") {
  Scenario scenario = examples::small_on_cpu(4, 4);
  scenario.search.emplace();
  scenario.search->modules.resize(3);
  scenario.search->modules[0].shard = {Shard::none};
  scenario.search->modules[0].recompute = {Recompute::none};
  const std::vector<Layout> layouts = candidates(scenario);
  const Space space(scenario);
  std::set<std::string> texts;
  for (const Layout& layout : layouts) {
    CHECK_FALSE(check_layout(scenario, layout).has_value());
    CHECK(space.allows(layout));
    CHECK(layout == at_rest(scenario, layout));
    texts.insert(resolved_text(layout, scenario.model));
  }
  CHECK(texts.size() == layouts.size());
  // Every choice is there: sharding of each kind, schedules, sequence and context parallelism.
  const auto some = [&](auto is) { return std::any_of(layouts.begin(), layouts.end(), is); };
  for (const Schedule& row : kSchedules)
    CHECK(some([&](const Layout& l) { return l.schedule == row.kind; }) == row.listed);
  for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::full})
    CHECK(some([&](const Layout& l) { return l.modules.back().shard == shard; }));
  CHECK(some([](const Layout& l) { return l.modules.back().sp; }));
  CHECK(some([](const Layout& l) { return l.modules.back().cp == 2; }));
  // Lists that say all of it, the other way round.
  Scenario listed = scenario;
  ModuleSearch& language = listed.search->modules.back();
  language.shard = {Shard::full, Shard::gradients, Shard::optimizer, Shard::none};
  language.sp = {true, false};
  language.recompute = {Recompute::full, Recompute::selective, Recompute::none};
  language.tp = {4, 2, 1};
  listed.search->placement = {Placement::non_colocated, Placement::colocated,
                              Placement::homogeneous};
  std::set<std::string> again;
  for (const Layout& layout : candidates(listed)) again.insert(resolved_text(layout, listed.model));
  CHECK(again == texts);
}

TEST_CASE("two encoders and a module fed by the language module: every possible placement") {
  const auto layouts_of = [&](const std::string& model, const std::string& data) {
    const Scenario scenario = with_encoders(model, data);
    for (const Layout& layout : candidates(scenario))
      CHECK_FALSE(check_layout(scenario, layout).has_value());
    return candidates(scenario);
  };
  const std::vector<Layout> two = layouts_of(kEncoders, "");
  for (const Placement placement :
       {Placement::homogeneous, Placement::colocated, Placement::non_colocated, Placement::mixed})
    CHECK(count(two, placement) > 0);
  for (const Layout& layout : two) {
    const ModuleLayout &vision = layout.modules[0], &audio = layout.modules[2],
                       &language = layout.modules[4];
    if (layout.placement == Placement::non_colocated)
      CHECK(vision.first_rank + vision.ranks == audio.first_rank);
    if (layout.placement != Placement::mixed) continue;
    CHECK(vision.first_rank == audio.first_rank);
    CHECK(vision.first_rank + vision.ranks == language.first_rank);
  }
  const std::vector<Layout> three =
      layouts_of(std::string(kEncoders) + kDiffusion, R"("latents": {"per_sample": 1}, )");
  CHECK(count(three, Placement::homogeneous) > 0);
  CHECK(count(three, Placement::colocated) == 0);  // the language module feeds a module
  CHECK(count(three, Placement::non_colocated) > 0);
  CHECK(count(three, Placement::mixed) > 0);
}

TEST_CASE("a unit's shortlist does not depend on what was listed before it") {
  // Workers list units in an order of their own: the answer must not know which.
  Scenario scenario = examples::vlm_on_h100();
  scenario.cluster.nodes = 8;
  scenario.search = examples::few_choices(3);
  scenario.search->placement = {Placement::colocated, Placement::non_colocated};
  scenario.search->modules[0].ranks = {8};
  scenario.search->modules[0].pp = {};
  scenario.search->modules[0].shard = {Shard::none, Shard::full};
  scenario.search->modules[2].tp = {4, 8};
  scenario.search->modules[2].vpp = {1, 2, 3};
  scenario.search->schedule = {};
  scenario.search->microbatch = {1, 4};
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  const Batch batch = typical_batch(scenario);
  const Space space(scenario);
  Lister forwards(scenario, space, profile, batch), backwards(scenario, space, profile, batch);
  const std::vector<Unit>& units = forwards.units();
  REQUIRE(units.size() > 10);
  std::vector<Shortlist> first, second;
  for (const Unit& unit : units) first.push_back(forwards.list(unit, {}));
  for (std::size_t i = units.size(); i-- > 0;) second.push_back(backwards.list(units[i], {}));
  std::size_t kept = 0;
  for (std::size_t i = 0; i < units.size(); ++i) {
    const Shortlist &one = first[i], &other = second[units.size() - 1 - i];
    REQUIRE(one.best.size() == other.best.size());
    for (std::size_t k = 0; k < one.best.size(); ++k) {
      CHECK(one.best[k].layout == other.best[k].layout);
      CHECK(one.best[k].bound == other.best[k].bound);
    }
    CHECK(one.rest == other.rest);
    kept += one.best.size();
  }
  CHECK(kept > 100);
}

TEST_CASE("encoders on the same ranks are listed at every common pipeline depth") {
  Scenario scenario = with_encoders(kEncoders, "");
  scenario.search->placement = {Placement::mixed};
  for (const std::size_t encoder : {0, 2}) {
    scenario.search->modules[encoder].pp = {1, 2};
    scenario.search->modules[encoder].shard = {Shard::none};
  }
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  const Batch batch = typical_batch(scenario);
  const Space space(scenario);
  Lister lister(scenario, space, profile, batch);
  int shallow = 0, deep = 0;
  // With pp 2 an encoder's ranks hold half: on the front of memory, behind it in time.
  for (const Unit& unit : lister.units())
    for (const Listed& listed : lister.list(unit, {.keep = 10'000, .limits = {}}).best) {
      CHECK(listed.layout.modules[0].pp == listed.layout.modules[2].pp);
      ++(listed.layout.modules[0].pp == 1 ? shallow : deep);
    }
  CHECK(shallow > 0);
  CHECK(deep > 0);
}

TEST_CASE(
    "if memory does not suffice without recomputation, the least recomputation is listed too") {
  Scenario scenario = with_encoders(kEncoders, "");
  scenario.search->placement = {Placement::homogeneous};
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  const Batch batch = typical_batch(scenario);
  Screen screen(scenario, profile, batch);
  // On one stage, nothing sharded: between what recomputing nothing and all of it takes.
  Layout plain;
  plain.modules.resize(scenario.model.modules.size());
  for (ModuleLayout& grid : plain.modules) grid.ranks = 8;
  REQUIRE_FALSE(check_layout(scenario, plain));
  Layout all = plain;
  for (ModuleLayout& grid : all.modules) grid.recompute = Recompute::full;
  const Bytes most = screen.footprint(plain).memory, least = screen.footprint(all).memory;
  REQUIRE(least < most);
  const auto libraries = [&](const Layout& layout) {
    return least_library_memory(scenario.model, layout, scenario.cluster, profile);
  };
  scenario.cluster.device.memory = Bytes((most.value + least.value) / 2) + libraries(plain);
  scenario.search->memory_margin = 0;  // all of the memory may be used
  const auto ranges = [&] {
    const Space space(scenario);
    Lister lister(scenario, space, profile, batch);
    std::vector<Layout> found;
    for (const Unit& unit : lister.units())
      for (const Listed& listed : lister.list(unit, {.keep = 10'000, .limits = {}}).best)
        if (const auto& grids = listed.layout.modules;
            std::any_of(grids.begin(), grids.end(),
                        [&](const auto& g) { return !g.recompute_blocks.empty(); }))
          found.push_back(listed.layout);
    return found;
  };
  const std::vector<Layout> found = ranges();
  REQUIRE_FALSE(found.empty());
  for (const Layout& layout : found) {
    const Bytes room = scenario.cluster.device.memory - libraries(layout);
    CHECK(screen.footprint(layout).memory <= room);
    Layout less = layout;  // by the last block of the range
    for (ModuleLayout& grid : less.modules) {
      if (grid.recompute_blocks.empty()) continue;
      if (--grid.recompute_blocks[1] > 0) continue;
      grid.recompute = Recompute::none;
      grid.recompute_blocks.clear();
    }
    CHECK(screen.footprint(less).memory > room);
  }
  for (ModuleSearch& module : scenario.search->modules) module.recompute = {Recompute::full};
  CHECK(ranges().empty());
}

}  // namespace polyphony
