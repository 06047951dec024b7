// Splits that respect memory: the fastest of all that fit.
#include "shared/split/balanced_plan.h"
#include "shared/screen/hop_times.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "shared/cost/cost_model.h"
#include "shared/cost/layer_costs.h"
#include "shared/lower/lower.h"
#include "shared/plan/stages.h"
#include "shared/scenario/typical_batch.h"
#include "shared/screen/bound.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/split_question.h"

namespace polyphony {
namespace {

using Question = SplitQuestion;

// A language model of 10 blocks on `pp` stages, 8 microbatches: earlier stages hold more
// activations.
Question pipeline(int pp, int vpp = 1) {
  Question q;
  q.scenario.model = {{q.scenario.model.modules.back()}, {}};
  q.scenario.model.modules[0].layers = 10;
  q.scenario.model.modules[0].vocab = 64;
  q.scenario.data.source =
      SyntheticData{examples::always(0), examples::always(64), examples::always(2)};
  ModuleLayout grid;
  grid.pp = grid.ranks = pp;
  grid.vpp = vpp;
  q.layout.modules = {grid};
  q.layout.microbatches = 8;
  if (vpp > 1) q.layout.schedule = ScheduleKind::interleaved;
  return q;
}

std::vector<int> blocks_of(const Question& q) {
  return balanced_plan(q.scenario, q.layout, q.profile).branches.front().grid.blocks;
}

}  // namespace

TEST_SUITE("balanced plan") {
  TEST_CASE("of the splits that fit, the one whose most expensive stage is the cheapest") {
    Question q = pipeline(3);
    const std::vector<int> ranks{0, 1, 2};
    const std::vector<int> quickest = blocks_of(q);
    q.scenario.cluster.device.memory = Bytes(memory_of(q, quickest).value - 1);
    const Chain chain =
        chain_of(q.scenario.model, q.layout,
                 splitting(q.scenario, q.layout, q.profile,
                           module_sizes(q.scenario.model, typical_batch(q.scenario))),
                 {ModuleId(0)}, q.layout.modules[0], ranks);
    double least = 1e300;
    for (int a = 1; a < 9; ++a)
      for (int b = 1; a + b < 10; ++b) {
        const std::vector<int> blocks{a, b, 10 - a - b};
        if (memory_of(q, blocks) > q.scenario.cluster.device.memory) continue;
        const std::vector<double> costs = rank_costs(chain, ranks, blocks);
        least = std::min(least, *std::max_element(costs.begin(), costs.end()));
      }
    REQUIRE(least < 1e300);
    const std::vector<int> chosen = blocks_of(q);
    CHECK(chosen != quickest);
    CHECK(memory_of(q, chosen) <= q.scenario.cluster.device.memory);
    const std::vector<double> costs = rank_costs(chain, ranks, chosen);
    CHECK(*std::max_element(costs.begin(), costs.end()) == doctest::Approx(least));
  }

  TEST_CASE("if nothing fits, the fastest split is kept") {
    Question q = pipeline(3);
    const std::vector<int> quickest = blocks_of(q);
    q.scenario.cluster.device.memory = Bytes(1000);
    CHECK(blocks_of(q) == quickest);
  }

  TEST_CASE("virtual stages: ranks that are short of memory give up blocks") {
    Question q = pipeline(2, 2);
    const std::vector<int> quickest = blocks_of(q);
    q.scenario.cluster.device.memory = Bytes(memory_of(q, quickest).value - 1);
    const std::vector<int> chosen = blocks_of(q);
    CHECK(chosen != quickest);
    CHECK(memory_of(q, chosen) <= q.scenario.cluster.device.memory);
  }

  // Latencies of both ends and of the link, then bytes at what a flow gets of it.
  TEST_CASE("messages are part of the cost of a stage") {
    Question q = pipeline(3);
    q.scenario.cluster.nodes = 3;
    q.scenario.cluster.ranks_per_node = 1;
    const HopTimes hops = hop_times(q.scenario.cluster, q.profile);
    const ModuleLayout& grid = q.layout.modules[0];
    const Hop there = hops(grid, 0, 1, Bytes(1000000), true);
    const Cluster& c = q.scenario.cluster;
    const Seconds expected = q.profile.message_latency + c.fabric_link.latency +
                             Bytes(1000000) / (c.fabric_link.rate * q.profile.fabric_efficiency);
    CHECK(there.rows == doctest::Approx(expected.count()));
    CHECK(there.gradients == there.rows);
    CHECK(hops(grid, 0, 1, Bytes(1000000), false).gradients == 0);
    CHECK(hops(grid, 0, 1, Bytes(1000000), false).rows == 0);
    CHECK(hops(grid, 1, 1, Bytes(1000000), true).rows == 0);
    q.profile.stack.blocking_messages = true;  // the sender waits for its rows too
    CHECK(hop_times(c, q.profile)(grid, 0, 1, Bytes(1000000), true).gradients ==
          doctest::Approx(2 * expected.count()));
    CHECK(hop_times(c, q.profile)(grid, 0, 1, Bytes(1000000), false).gradients ==
          doctest::Approx(expected.count()));
  }

  // A frozen encoder's rows come ahead: of all splits of 9 blocks on 3 stages the one that is
  // chosen is played the quickest, over links that rows take about as long as the blocks of a
  // stage.
  TEST_CASE("over slow links, a frozen encoder's split is the fastest in simulation") {
    Question q;
    q.scenario = examples::small_on_cpu(4, 8);
    Module& vision = q.scenario.model.modules[0];
    vision.layers = 9;
    q.scenario.model.modules[2].layers = 1;
    q.scenario.model.modules[2].vocab = 64;
    q.scenario.data.source =
        SyntheticData{examples::always(8), examples::always(2), examples::always(1)};
    vision.trainable = q.scenario.model.modules[1].trainable = Trainable::frozen;
    q.scenario.cluster.nodes = 4;
    q.scenario.cluster.ranks_per_node = 1;
    q.scenario.cluster.node_link.rate = q.scenario.cluster.fabric_link.rate = BytesPerSecond(5e7);
    ModuleLayout encoder, language;
    encoder.pp = encoder.ranks = 3;
    language.first_rank = 3;
    q.layout = {.placement = Placement::non_colocated,
                .modules = {encoder, encoder, language},
                .microbatches = 8};
    const auto step = [&](const std::vector<int>& blocks) {
      Layout layout = q.layout;
      layout.modules[0].blocks = layout.modules[1].blocks = blocks;
      const Program program =
          lower(q.scenario, layout, balanced_plan(q.scenario, layout, q.profile),
                typical_batch(q.scenario));
      const Compiled compiled = std::get<Compiled>(compile(program));
      return estimate(program, compiled, price(program, compiled, q.scenario.cluster, q.profile))
          .step()
          .count();
    };
    double least = 1e300;
    for (int a = 1; a < 8; ++a)
      for (int b = 1; a + b < 9; ++b) least = std::min(least, step({a, b, 9 - a - b}));
    const std::vector<int> chosen =
        balanced_plan(q.scenario, q.layout, q.profile).branches[0].grid.blocks;
    CAPTURE(chosen);
    CHECK(step(chosen) == doctest::Approx(least).epsilon(1e-3));
    CHECK(step({5, 2, 2}) > 1.05 * least);
  }
}

}  // namespace polyphony
