// Stages of equal cost: by given layer times, and by FLOPs without them. Costs that an assignment
// of tokens to context-parallel ranks counts in addition to attention.
#include <doctest/doctest.h>

#include <algorithm>

#include "shared/check/check.h"
#include "shared/plan/plan.h"
#include "shared/plan/stages.h"
#include "shared/step/assign.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {
namespace {

Layout one_pipeline(const Model& model, int stages) {
  ModuleLayout grid;
  grid.pp = grid.ranks = stages;
  Layout layout;
  layout.modules.assign(model.modules.size(), grid);
  return layout;
}

Seconds bottleneck(const Branch& branch, const LayerCosts& costs) {
  Seconds most{};
  for (const Stage& stage : branch.stages) {
    Seconds sum{};
    for (const Chunk& chunk : stage.chunks)
      for (int layer = chunk.layers.begin; layer < chunk.layers.end; ++layer)
        sum += costs[chunk.module.value][static_cast<std::size_t>(layer)].total();
    most = std::max(most, sum);
  }
  return most;
}

std::vector<std::size_t> language_blocks(const Plan& plan) {
  std::vector<std::size_t> blocks;
  for (const Stage& stage : plan.branches.front().stages) {
    blocks.push_back(0);
    for (const Chunk& chunk : stage.chunks) blocks.back() += chunk.layers.size();
  }
  return blocks;
}

}  // namespace

TEST_SUITE("balance") {
  // 64 vision layers of 6.75 ms and 64 language layers of 10.5 ms on 16 stages: the best bottleneck
  // stage has 7 language layers, 73.5 ms, as published (DIP, arXiv 2504.14145v2: 63 to 73.5 ms).
  TEST_CASE("stages are split by the given layer times") {
    Scenario scenario = examples::vlm_on_h100();
    scenario.model.modules[0].layers = scenario.model.modules[2].layers = 64;
    scenario.cluster.nodes = 2;
    LayerCosts costs;
    for (const double block_ms : {6.75, 0.0, 10.5}) {
      const Module& module = scenario.model.modules[costs.size()];
      const bool projector = module.kind == ModuleKind::projector;
      costs.emplace_back(layers(module).size());
      if (!projector)
        std::fill(costs.back().begin() + 1, costs.back().begin() + 65,
                  LayerCost{Seconds(block_ms * 1e-3 / 3), Seconds(block_ms * 2e-3 / 3), {}});
    }
    const Layout layout = one_pipeline(scenario.model, 16);
    const Plan plan = make_plan(scenario, layout, {costs});
    CHECK(bottleneck(plan.branches.front(), costs).count() == doctest::Approx(73.5e-3));

    const Layout split = with_blocks(layout, plan);
    CHECK_FALSE(is_split(scenario, layout));
    CHECK(is_split(scenario, split));
    CHECK_FALSE(check_layout(scenario, split).has_value());
    // With a stored split, neither costs nor the data are needed again.
    scenario.data.source = RecordedData{"not read"};
    CHECK(make_plan(scenario, split).branches.front().stages == plan.branches.front().stages);
  }

  // SigLIP (27 blocks) and Llama-3.2-1B (16) with recomputation, milliseconds as published
  // (Cornstarch, ICML 2026, Fig. 1b): encoder 44.26 and 0.50, language model 138.33 and 284.50 when
  // the projector alone trains. Of 4 stages:
  //   unaware   forward 6 · 8.65 = 51.9 at least; of what a microbatch costs, 6 · 26.43 = 158.6
  //   aware     at least 5 · 26.43 = 132.1; the most even such split has 3 blocks next to the
  //             encoder
  TEST_CASE("balance aware gives a frozen encoder's stage more layers than balance unaware") {
    Scenario scenario = examples::vlm_on_h100();
    scenario.model.modules[0].layers = 27;
    scenario.model.modules[2].layers = 16;
    LayerCosts costs;
    for (const auto& [forward, backward] : {std::pair{44.26 / 27, 0.50 / 27}, std::pair{0.0, 0.0},
                                            std::pair{138.33 / 16, 284.50 / 16}}) {
      const Module& module = scenario.model.modules[costs.size()];
      costs.emplace_back(layers(module).size());
      for (int block = 1; block <= module.layers && module.kind != ModuleKind::projector; ++block)
        costs.back()[static_cast<std::size_t>(block)] = {
            Seconds(forward * 1e-3), Seconds(backward * 1e-3), {}};
    }
    Layout layout = one_pipeline(scenario.model, 4);
    const Plan aware = make_plan(scenario, layout, {costs});
    CHECK(aware.branches.front().grid.blocks == std::vector<int>{27 + 3, 4, 4, 5});
    CHECK(bottleneck(aware.branches.front(), costs).count() ==
          doctest::Approx(5 * (138.33 + 284.50) / 16 * 1e-3));
    layout.balance = Balance::unaware;
    const Plan unaware = make_plan(scenario, layout, {costs});
    CHECK(bottleneck(unaware.branches.front(), costs).count() ==
          doctest::Approx(6 * (138.33 + 284.50) / 16 * 1e-3));
  }

  // Of the same figures: recomputation 1 F, so that Bd = (284.50 - 138.33) / 138.33 = 1.06 F and Bw
  // = 375.93 / 140.39 - 1 - Bd = 0.62 F. On two stages the 16 blocks, without the encoder: even
  // when all train. With the first 8 frozen and nothing upstream they cost F, the others F + (1 +
  // Bw) F and Bd but in the first: 8 + 8 · 3.68 - 1.06 = 36.4 F in all, of which the first stage
  // has 8 + 3 blocks: 8 + 2.62 + 2 · 3.68 = 17.98 F, and the second 5 · 3.68 = 18.40 F.
  TEST_CASE("forwards, input and weight gradients and recomputation add up as published") {
    const double input = (284.50 - 138.33) / 138.33, weight = 375.93 / 140.39 - 1 - input;
    CHECK(input == doctest::Approx(1.06).epsilon(0.005));
    CHECK(weight == doctest::Approx(0.62).epsilon(0.005));
    Chain chain;
    for (int block = 0; block < 16; ++block) {
      const bool trained = block >= 8, upstream = block > 8;
      chain.costs.push_back(1 + (trained ? 1 + weight : 0) + (upstream ? input : 0));
    }
    CHECK(partition_chain(chain, 2) == std::vector<int>{11, 5});
    CHECK(rank_costs(chain, {0, 1}, {11, 5})[0] == doctest::Approx(17.98).epsilon(0.001));
    CHECK(rank_costs(chain, {0, 1}, {11, 5})[1] == doctest::Approx(18.40).epsilon(0.001));
    chain.costs.assign(16, 2 + weight + input);
    CHECK(partition_chain(chain, 2) == std::vector<int>{8, 8});
  }

  // Rows flow from block to block; their gradients return where something upstream trains.
  TEST_CASE("stages wait for rows and for gradients that return") {
    Scenario scenario = examples::small_on_cpu(2, 8);
    scenario.model.modules[0].trainable = Trainable::frozen;
    LayerCosts costs;
    for (const Module& module : scenario.model.modules)
      costs.emplace_back(layers(module).size(),
                         LayerCost{Seconds(1), Seconds(1), Bytes(1000 + 100 * module.layers)});
    Layout layout = one_pipeline(scenario.model, 2);
    const ModuleLayout& grid = layout.modules.back();
    const std::vector<ModuleId> owners{ModuleId(0), ModuleId(2)};
    const HopTimes bytes = [](const ModuleLayout&, int from, int to, Bytes sent, bool returned) {
      CHECK(to == from + 1);
      return Hop{static_cast<double>(sent.value), returned ? 1.0 : 0.0};
    };
    const Chain chain = chain_of(scenario.model, layout, {costs, bytes}, owners, grid, {0, 1});
    REQUIRE(chain.costs.size() == 4 + 6);
    CHECK(chain.hop(1, 2).rows == 1400);
    CHECK(chain.hop(1, 2).gradients == 0);
    CHECK(chain.hop(1, 4).rows == 1000);  // of the projector
    CHECK(chain.hop(1, 4).gradients == 1);
    CHECK(chain.hop(1, 7).rows == 1600);
    layout.balance = Balance::unaware;
    CHECK_FALSE(chain_of(scenario.model, layout, {costs, bytes}, owners, grid, {0, 1}).hop);
  }

  TEST_CASE("the split of two pipelines is stored with each") {
    const Scenario scenario = examples::small_on_cpu(4, 8);
    Layout layout = one_pipeline(scenario.model, 2);
    layout.placement = Placement::non_colocated;
    layout.modules[2].first_rank = 2;
    const Plan plan = make_plan(scenario, layout);
    const Layout split = with_blocks(layout, plan);
    CHECK(split.modules[0].blocks == plan.branches[0].grid.blocks);
    CHECK(split.modules[1].blocks.empty());
    CHECK(split.modules[2].blocks == plan.branches[1].grid.blocks);
    CHECK(is_split(scenario, split));
  }

  // A block costs 1 forward and 2 backward, a recomputed one 1 more. Of 12 blocks the first 6: 5 ·
  // 4 and 4 + 6 · 3, where equal counts would give 24 and 18. The head is too small to count.
  TEST_CASE("recomputed blocks cost more than others") {
    Scenario scenario = examples::small_on_cpu(2, 8);
    scenario.model = {{scenario.model.modules.back()}, {}};
    scenario.model.modules[0].layers = 12;
    scenario.model.modules[0].vocab = 8;
    scenario.data.source =
        SyntheticData{examples::always(0), examples::always(64), examples::always(2)};
    Layout layout = one_pipeline(scenario.model, 2);
    CHECK(language_blocks(make_plan(scenario, layout)) ==
          std::vector<std::size_t>{1 + 6, 6 + 1});  // with the embedding, with the head
    layout.modules[0].recompute = Recompute::full;
    layout.modules[0].recompute_blocks = {0, 6};
    CHECK(language_blocks(make_plan(scenario, layout)) == std::vector<std::size_t>{1 + 5, 7 + 1});
  }

  // Of one token and block, 2 FLOPs a weight: q and out 2 · 96 · 96, k and v 2 · 96 · 48, SwiGLU
  // 3 · 96 · 256 = 101,376 weights; of one pair, 4 · 96 FLOPs.
  TEST_CASE("the assignment of tokens counts experts and routers, and windows separately") {
    Module language = examples::small_on_cpu(1, 1).model.modules.back();
    const auto linear_pairs = [](const Module& module) {
      const TokenCosts costs = token_costs(module);
      CHECK(costs.pair == doctest::Approx(384.0 * module.layers));
      return costs.token / costs.pair;
    };
    CHECK(linear_pairs(language) == doctest::Approx(2 * 101376.0 / 384));
    // Two of four experts as wide as half of it each, and the router.
    language.experts = 4;
    language.experts_per_token = 2;
    language.expert_ffn = 128;
    language.ffn = 0;
    CHECK(linear_pairs(language) == doctest::Approx(2 * (101376.0 + 96 * 4) / 384));
    language.experts_per_token = 4;
    CHECK(linear_pairs(language) == doctest::Approx(2 * (101376.0 + 3 * 96 * 256 + 96 * 4) / 384));
    language.layers = 4;
    language.mixers = {Mixer::window, Mixer::full, Mixer::window, Mixer::window};
    language.sliding_window = 8;
    CHECK(token_costs(language).pair == doctest::Approx(384));
    CHECK(token_costs(language).window_pair == doctest::Approx(3 * 384));
    language.mixers = {Mixer::window};  // no block sees all
    CHECK(token_costs(language).pair == 0);
    CHECK(token_costs(language).window_pair == doctest::Approx(4 * 384));
  }
}

}  // namespace polyphony
