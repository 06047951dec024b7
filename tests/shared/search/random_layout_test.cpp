// Random legal layouts and the steps between layouts.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "shared/check/check.h"
#include "shared/scenario_io/scenario_json.h"
#include "shared/search/neighbours.h"
#include "shared/search/random_layout.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony {
namespace {

// small_on_cpu() with experts, on 16 ranks of 2 nodes.
Scenario small_with_experts() {
  Scenario scenario = examples::small_on_cpu(8, 32);
  scenario.cluster.nodes = 2;
  Module& language = scenario.model.modules[2];
  language.ffn = 0;
  language.experts = 4;
  language.experts_per_token = 2;
  language.expert_ffn = 64;
  return scenario;
}

using Has = std::function<bool(const Layout&)>;
Has any_grid(std::function<bool(const ModuleLayout&)> has) {
  return [has](const Layout& layout) {
    return std::any_of(layout.modules.begin(), layout.modules.end(), has);
  };
}

}  // namespace

TEST_CASE("random layouts: legal, reproducible, with every value of every field") {
  const Scenario scenario = small_with_experts();
  std::map<std::string, Has> features;
  for (const ScheduleKind kind :
       {ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved,
        ScheduleKind::zero_bubble, ScheduleKind::zero_bubble_h2, ScheduleKind::zero_bubble_v,
        ScheduleKind::dualpipe_v, ScheduleKind::eager_one_f_one_b, ScheduleKind::v_half,
        ScheduleKind::v_min, ScheduleKind::interleaved_zero_bubble})
    features[name(kind)] = [kind](const Layout& layout) { return layout.schedule == kind; };
  for (int p = 0; p <= static_cast<int>(last_of(Placement{})); ++p)
    features[name(static_cast<Placement>(p))] = [p](const Layout& layout) {
      return layout.placement == static_cast<Placement>(p);
    };
  using Grid = ModuleLayout;
  features["tp"] = any_grid([](const Grid& g) { return g.tp > 1; });
  features["cp"] = any_grid([](const Grid& g) { return g.cp > 1; });
  features["ep"] = any_grid([](const Grid& g) { return g.ep > 1; });
  features["expert_tp"] = any_grid([](const Grid& g) { return g.expert_tp == 1; });
  features["sp"] = any_grid([](const Grid& g) { return g.sp; });
  features["tp_pieces"] = any_grid([](const Grid& g) { return g.tp_pieces > 1; });
  features["shard_ranks"] = any_grid([](const Grid& g) { return g.shard_ranks > 1; });
  features["fully sharded"] = any_grid([](const Grid& g) { return g.shard == Shard::full; });
  features["range"] = any_grid([](const Grid& g) { return !g.recompute_blocks.empty(); });
  features["zigzag"] = any_grid([](const Grid& g) { return g.tokens == TokenAssignment::zigzag; });
  for (const auto way : {ContextAttention::ulysses, ContextAttention::ring})
    features[name(way)] = any_grid([way](const Grid& g) { return g.cp_attention == way; });
  features["heads at a time"] = any_grid([](const Grid& g) { return g.cp_heads > 0; });
  features["images"] = any_grid([](const Grid& g) { return g.spread == Spread::images; });
  features["blocks"] = any_grid([](const Grid& g) { return !g.blocks.empty(); });
  features["leader"] = [](const Layout& layout) { return layout.bridge == Bridge::leader; };
  features["encoder pp"] = [](const Layout& layout) {
    return layout.placement == Placement::colocated && layout.modules[0].pp > 1;
  };
  features["encoder vpp"] = [](const Layout& layout) {
    return layout.placement != Placement::homogeneous && layout.modules[0].vpp > 1;
  };
  features["ahead"] = any_grid([](const Grid& g) { return g.ahead > 0; });
  for (int o = 0; o <= static_cast<int>(last_of(EncoderOrder{})); ++o)
    features[std::string("encoder order ") + name(static_cast<EncoderOrder>(o))] =
        [o](const Layout& layout) { return layout.encoder_order == static_cast<EncoderOrder>(o); };
  features["works apart"] = [](const Layout& layout) {
    return layout.placement == Placement::non_colocated && layout.encoder_microbatches > 1;
  };
  features["works"] = [](const Layout& layout) { return layout.encoder_microbatches > 1; };
  std::map<std::string, int> seen;
  constexpr int kDraws = 400;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const auto layout = random_layout(scenario, seed);
    REQUIRE(layout);
    CHECK_FALSE(check_layout(scenario, *layout));
    if (seed < 20) CHECK(random_layout(scenario, seed) == layout);
    for (const auto& [feature, has] : features) seen[feature] += has(*layout);
  }
  for (const auto& [feature, has] : features) {
    CAPTURE(feature);
    CHECK(seen[feature] >= kDraws / 100);
  }
  for (const char* placement : {"homogeneous", "colocated", "non-colocated", "mixed"})
    CHECK(seen[placement] >= kDraws / 8);
}

TEST_CASE("random layouts of every kind of module, with and without experts, survive a file") {
  Scenario scenario = test::scenario_at("scenarios/tiny_all.json");
  SUBCASE("dense") {}
  SUBCASE("experts") {
    Module& language = scenario.model.modules[language_module(scenario.model).value];
    language.experts = 4;
    language.experts_per_token = 2;
    language.expert_ffn = language.ffn;
    language.ffn = 0;
  }
  int found = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto layout = random_layout(scenario, seed);
    if (!layout) continue;
    ++found;
    CHECK_FALSE(check_layout(scenario, *layout));
    CHECK(layout->placement != Placement::colocated);  // what a language module feeds
    Scenario with = scenario;
    with.layout = layout;
    with.search.reset();
    const std::string text = resolved_text(with);
    Layout again = *read_scenario(text, "scenarios/tiny_all.json", test::file_text).layout;
    for (std::size_t m = 0; m < again.modules.size(); ++m)
      if (grid_owner(scenario.model, ModuleId(m)) != ModuleId(m))  // its owner's
        again.modules[m] = layout->modules[m];
    CHECK(again == *layout);
  }
  CHECK(found == 60);
}

TEST_CASE("neighbors: legal, different, one step away and back") {
  const Scenario scenario = small_with_experts();
  int steps = 0, back = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Layout layout = *random_layout(scenario, seed);
    const std::vector<Layout> around = neighbours(scenario, layout);
    CHECK(around.size() > 5);
    CHECK(around == neighbours(scenario, layout));
    for (std::size_t i = 0; i < around.size(); ++i) {
      CHECK_FALSE(check_layout(scenario, around[i]));
      CHECK(around[i] != layout);
      CHECK(std::find(around.begin(), around.begin() + static_cast<std::ptrdiff_t>(i), around[i]) ==
            around.begin() + static_cast<std::ptrdiff_t>(i));
    }
    // Most steps can be taken back; not those that dropped something, as blocks.
    const Layout& next = around[seed % around.size()];
    const std::vector<Layout> from_there = neighbours(scenario, next);
    ++steps;
    back += std::find(from_there.begin(), from_there.end(), layout) != from_there.end();
  }
  CHECK(back >= steps / 2);
}

TEST_CASE("neighbors: dependent fields after a change of tp") {
  // TP2 PP2 DP4 on 16 ranks, 32 samples in 4 microbatches of 2 a lane. TP4: DP2, 8 microbatches.
  const Scenario scenario = small_with_experts();
  ModuleLayout grid;
  grid.tp = grid.pp = 2;
  grid.ranks = 16;
  const Layout layout{
      .placement = Placement::homogeneous, .modules = {grid, grid, grid}, .microbatches = 4};
  REQUIRE_FALSE(check_layout(scenario, layout));
  Layout wanted = layout;
  for (ModuleLayout& module : wanted.modules) module.tp = 4;
  wanted.microbatches = 8;
  const std::vector<Layout> around = neighbours(scenario, layout);
  CHECK(std::find(around.begin(), around.end(), wanted) != around.end());
  // Three virtual stages: interleaved.
  wanted = layout;
  for (ModuleLayout& module : wanted.modules) module.vpp = 2;
  wanted.schedule = ScheduleKind::interleaved;
  CHECK(std::find(around.begin(), around.end(), wanted) != around.end());
  // HSDP over 2 of 4 copies is two steps away: sharded, then halved.
  wanted = layout;
  for (ModuleLayout& module : wanted.modules) module.shard = Shard::full;
  const std::vector<Layout> sharded = neighbours(scenario, wanted);
  for (ModuleLayout& module : wanted.modules) module.shard_ranks = 2;
  CHECK(std::find(sharded.begin(), sharded.end(), wanted) != sharded.end());
}

TEST_CASE(
    "neighbors: encoders that run ahead, in another order, along the language module's pipeline") {
  const Scenario scenario = small_with_experts();
  ModuleLayout encoder, language;
  encoder.ranks = language.ranks = language.first_rank = 8;
  language.pp = 2;
  Layout layout{.placement = Placement::non_colocated,
                .modules = {encoder, encoder, language},
                .microbatches = 4};
  Layout wanted = layout;
  wanted.modules[0].ahead = wanted.modules[1].ahead = 1;
  std::vector<Layout> around = neighbours(scenario, layout);
  CHECK(std::find(around.begin(), around.end(), wanted) != around.end());
  layout.placement = Placement::colocated;
  layout.modules[2].first_rank = 0;
  around = neighbours(scenario, layout);
  for (const EncoderOrder order : {EncoderOrder::phases, EncoderOrder::interleaved}) {
    wanted = layout;
    wanted.modules[0].pp = wanted.modules[1].pp = 2;
    wanted.encoder_order = order;
    CHECK(std::find(around.begin(), around.end(), wanted) != around.end());
  }
}

}  // namespace polyphony
