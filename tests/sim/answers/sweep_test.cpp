// A sweep: what its candidates cost to examine, and intervals from what the workers send back.
#include "sim/answers/sweep.h"

#include <doctest/doctest.h>

#include "shared/hardware/devices.h"
#include "shared/scenario/typical_batch.h"
#include "sim/answers/answers_json.h"
#include "sim/prediction/effects.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::tests {
namespace {

using namespace sim;

// Questions of 4 to 9 words about a picture, as the data set has them.
Scenario with_questions(const std::string& path) {
  Scenario scenario = test::scenario_at(path);
  const Module& vision = scenario.model.modules.front();
  const int side = vision.image_size / vision.patch;
  for (std::uint32_t id = 0; id < 64; ++id)
    scenario.data.samples.push_back({id,
                                     {{Modality::image, side * side, 0},
                                      {Modality::text, 4 + static_cast<std::int32_t>(id % 6), 1}}});
  return scenario;
}

Sweep small_sweep(const Scenario& scenario, const HardwareProfile& profile) {
  SweepOptions options;
  options.jobs = 2;
  options.predictor = Predictor::estimate;
  return sweep(scenario, profile, options);
}

}  // namespace

// Samples differ, so that no layout folds.
TEST_CASE("every candidate is lowered once, and the sweep lowers nothing beside") {
  const Scenario scenario = with_questions("scenarios/easy_vqa_4_ranks.json");
  const std::uint64_t before = programs_lowered();
  const Sweep result = small_sweep(scenario, *shipped_profile(scenario.cluster));
  CHECK(programs_lowered() == before);  // in workers alone
  REQUIRE(result.ranked.size() > 3);
  for (const Candidate& c : result.ranked) CHECK(c.lowerings == 1);
}

// rehearse_8.json's samples are all alike: where ranks do the same, intervals are priced on some of
// them.
TEST_CASE("what folds is lowered folded too, once") {
  Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  scenario.layout.reset();
  scenario.search.emplace();
  const Sweep result = small_sweep(scenario, *shipped_profile(scenario.cluster));
  REQUIRE(result.ranked.size() > 3);
  const Batch batch = typical_batch(scenario);
  int folding = 0;
  for (const Candidate& c : result.ranked) {
    const auto kept = fold(scenario, c.layout, make_plan(scenario, c.layout), batch);
    const bool folds = std::holds_alternative<Folded>(kept);
    CHECK(c.lowerings == (folds ? 2 : 1));
    folding += folds ? 1 : 0;
  }
  CHECK((folding > 0 && folding < static_cast<int>(result.ranked.size())));
}

TEST_CASE("intervals are those of the candidate's own prediction") {
  const Scenario scenario = with_questions("scenarios/easy_vqa.json");
  const HardwareProfile profile = *shipped_profile(scenario.cluster);
  const Sweep result = small_sweep(scenario, profile);
  REQUIRE(result.ranked.size() > 5);
  const Candidate& last = result.ranked[5];  // of those that are compared
  const auto outcome =
      predict(scenario, last.layout, typical_batch(scenario), profile, Predictor::estimate);
  const auto& prediction = std::get<Prediction>(outcome);
  const std::vector<double> effects = step_effects(scenario, last.layout, prediction, profile);
  REQUIRE(effects.size() == last.effects.size());
  for (std::size_t k = 0; k < effects.size(); ++k)
    CHECK(last.effects[k] == doctest::Approx(effects[k]));
  REQUIRE(last.belief.has_value());
  CHECK(last.belief->step == prediction.step());
  CHECK(last.difference.has_value());
  CHECK_FALSE(result.ranked.front().difference.has_value());
  // The value says all that its JSON says.
  const nlohmann::json json = to_json(result);
  CHECK(json["ranked"].size() == result.ranked.size());
  CHECK(json["ranked"][5]["layout"] == describe(scenario.model, last.layout));
  CHECK(json["profile"] == profile.name);
}

}  // namespace polyphony::tests
