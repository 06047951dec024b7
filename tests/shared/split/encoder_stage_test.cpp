// Encoders that stay on the first stage: the best of all such splits, and those that fit.
#include "shared/split/encoder_stage.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "shared/cost/layer_costs.h"
#include "shared/plan/partition.h"
#include "shared/plan/stages.h"
#include "shared/scenario/typical_batch.h"
#include "shared/screen/bound.h"
#include "shared/split/balanced_plan.h"
#include "tests/shared/support/split_question.h"

namespace polyphony {
namespace {

// 4 blocks of an encoder and 6 of a language model, on pp · vpp stages.
struct StageQuestion : SplitQuestion {
  std::vector<WorkSize> sizes;
  std::vector<int> ranks;
  Chain chain;
};

StageQuestion question(int pp, int vpp, int images = 1) {
  StageQuestion q;
  q.scenario.data.source =
      SyntheticData{examples::always(images), examples::always(8), examples::always(2)};
  ModuleLayout grid;
  grid.pp = grid.ranks = pp;
  grid.vpp = vpp;
  q.layout.modules = {grid, grid, grid};
  q.layout.microbatches = 8;
  if (vpp > 1) q.layout.schedule = ScheduleKind::interleaved;
  q.sizes = module_sizes(q.scenario.model, typical_batch(q.scenario));
  q.ranks = ranks_of_stages(q.layout, grid, true);
  q.chain =
      chain_of(q.scenario.model, q.layout, splitting(q.scenario, q.layout, q.profile, q.sizes),
               {ModuleId(0), ModuleId(2)}, grid, q.ranks);
  return q;
}

double slowest(const StageQuestion& q, const std::vector<int>& blocks) {
  const std::vector<double> costs = rank_costs(q.chain, q.ranks, blocks);
  return *std::max_element(costs.begin(), costs.end());
}

// Calls `visit` with every split of 10 blocks whose first stage has the encoder's 4.
void all_splits(std::vector<int> begun, std::size_t stages, int left,
                const std::function<void(const std::vector<int>&)>& visit) {
  const int least = begun.empty() ? 4 : 1;
  begun.push_back(0);
  if (begun.size() == stages) {
    begun.back() = left;
    if (left >= least) visit(begun);
    return;
  }
  for (begun.back() = least; begun.back() < left; ++begun.back())
    all_splits(begun, stages, left - begun.back(), visit);
}

std::vector<int> encoder_blocks_of(const StageQuestion& q) {
  const auto split = with_encoder_stage(q.scenario, q.layout, q.profile, q.sizes,
                                        q.scenario.cluster.device.memory);
  REQUIRE(split);
  return split->modules.back().blocks;
}

}  // namespace

TEST_SUITE("encoder stage") {
  TEST_CASE("the most expensive rank is the cheapest of all splits behind the encoder") {
    for (const auto& [pp, vpp, images] :
         {std::tuple{2, 1, 1}, {3, 1, 1}, {4, 1, 1}, {3, 1, 40}, {2, 2, 1}, {2, 3, 1}}) {
      CAPTURE(pp);
      CAPTURE(vpp);
      CAPTURE(images);
      const StageQuestion q = question(pp, vpp, images);
      REQUIRE(leaves_encoder_stage(q.scenario.model, q.layout));
      double least = 1e300;
      all_splits({}, static_cast<std::size_t>(pp * vpp), 10, [&](const std::vector<int>& blocks) {
        least = std::min(least, slowest(q, blocks));
      });
      const std::vector<int> chosen = encoder_blocks_of(q);
      CHECK(chosen.front() >= 4);
      CHECK(slowest(q, chosen) == doctest::Approx(least));
    }
  }

  TEST_CASE("if memory is short, the quickest split that fits") {
    StageQuestion q = question(3, 1);
    const std::vector<int> quickest = encoder_blocks_of(q);
    q.scenario.cluster.device.memory = Bytes(memory_of(q, quickest).value - 1);
    double least = 1e300;
    all_splits({}, 3, 10, [&](const std::vector<int>& blocks) {
      if (memory_of(q, blocks) <= q.scenario.cluster.device.memory)
        least = std::min(least, slowest(q, blocks));
    });
    REQUIRE(least < 1e300);
    const std::vector<int> chosen = encoder_blocks_of(q);
    CHECK(chosen != quickest);
    CHECK(slowest(q, chosen) == doctest::Approx(least));
  }

  TEST_CASE("what it is not for: stated blocks, one stage, no encoder, too few blocks") {
    StageQuestion q = question(2, 1);
    Layout stated = q.layout;
    stated.modules.back().blocks = {5, 5};
    CHECK_FALSE(leaves_encoder_stage(q.scenario.model, stated));
    CHECK_FALSE(leaves_encoder_stage(q.scenario.model, question(1, 1).layout));
    Model alone{{q.scenario.model.modules.back()}, {}};
    CHECK_FALSE(leaves_encoder_stage(alone, q.layout));
    StageQuestion deep = question(4, 2);  // 7 stages behind the encoder's, for 6 blocks
    CHECK_FALSE(with_encoder_stage(deep.scenario, deep.layout, deep.profile, deep.sizes, {}));
  }
}

}  // namespace polyphony
