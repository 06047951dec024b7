// Encoders without a backward run ahead of the language module as far as their layout says, and hold
// no more rows for it than that.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "shared/check/check.h"
#include "shared/cost/cost_model.h"
#include "shared/graph/memory.h"
#include "shared/hardware/devices.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "shared/verify/verify.h"
#include "tests/shared/support/example_models.h"

namespace polyphony {
namespace {

// A small encoder that has its rank to itself, in front of a language module on another, in eight
// microbatches of one image: four merged patches of 96 numbers each, in fp32.
constexpr int kMicrobatches = 8;
constexpr Bytes kRows{4 * 96 * 4};

struct Step {
  Seconds seconds;
  Bytes peak;  // of the encoder's rank
};
Step step_of(const Scenario& scenario, int ahead, int language_pp) {
  Layout layout{.placement = Placement::non_colocated, .modules = std::vector<ModuleLayout>(3)};
  layout.modules[0].ahead = layout.modules[1].ahead = ahead;
  layout.modules[2].first_rank = 1;
  layout.modules[2].pp = layout.modules[2].ranks = language_pp;
  layout.microbatches = kMicrobatches;
  REQUIRE_FALSE(check_layout(scenario, layout));
  const Plan plan = make_plan(scenario, layout);
  const Batch batch = typical_batch(scenario);
  const Program program =
      lower(scenario, layout, plan, make_step_plan(scenario, layout, plan, batch), batch);
  CHECK(verify(program).empty());
  const Compiled compiled = std::get<Compiled>(compile(program));
  const CostTable costs =
      price(program, compiled, scenario.cluster, *shipped_profile(scenario.cluster));
  const Estimate found = estimate(program, compiled, costs);
  return {found.step(), predict_memory(program, found.timeline).front().peak};
}

Scenario with_frozen_encoder(int ranks, Trainable projector) {
  Scenario scenario = examples::small_on_cpu(ranks, kMicrobatches);
  scenario.model.modules[0].trainable = Trainable::frozen;
  scenario.model.modules[1].trainable = projector;
  return scenario;
}

}  // namespace

TEST_CASE("an encoder without a backward holds as many outputs as its layout lets it run ahead") {
  const Scenario scenario = with_frozen_encoder(2, Trainable::frozen);
  const Step least = step_of(scenario, 0, 1);
  // The language module has one, and receives two ahead; the first that waits makes room for the next:
  // of eight three more can wait.
  for (const int ahead : {1, 2, 3, 100}) {
    const Step more = step_of(scenario, ahead, 1);
    CHECK(more.peak - least.peak == kRows * std::int64_t{std::min(ahead, 3)});
    CHECK(more.seconds == least.seconds);
  }
}

// Zero to eight images a sample: an encoder that waits for the gradients of 1F1B's action has nothing to
// give when a sample of many comes.
TEST_CASE(
    "where microbatches differ, running further ahead is faster and needs more activation memory") {
  Scenario scenario = with_frozen_encoder(3, Trainable::full);
  scenario.model.modules[0].layers = 12;
  scenario.data.source = SyntheticData{{.kind = Distribution::Kind::uniform, .a = 0, .b = 8},
                                       examples::always(8),
                                       examples::always(2)};
  const Step none = step_of(scenario, 0, 2), two = step_of(scenario, 2, 2),
             all = step_of(scenario, kMicrobatches, 2);
  CHECK(two.seconds < none.seconds * 0.95);
  CHECK(two.peak > none.peak);
  CHECK(all.seconds <= two.seconds);
  CHECK(all.peak > two.peak);
}

}  // namespace polyphony
