#include "sim/sweep/phase_plan.h"

#include <doctest/doctest.h>

#include "sim/answer_json/answer_schema.h"
#include "sim/answer_json/answers_json.h"
#include "sim/shown/phase_plan_text.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/scenario_files.h"
#include "tests/shared/support/schema_validator.h"

namespace polyphony::tests {
namespace {

using namespace sim;

// The answer of a sweep that has found the scenario's own layout, with this step time.
GoalSweep found(Scenario scenario, Seconds step) {
  GoalSweep answer;
  Candidate best;
  best.layout = *scenario.layout;
  best.figures.step = step;
  Sweep sweep;
  sweep.ranked.push_back(best);
  answer.sweeps.push_back({{}, std::move(scenario), {}, sweep});
  answer.reached.push_back({0, 0, {step.count()}, {}});
  return answer;
}

}  // namespace

TEST_CASE("days, hours and dollars of phases follow from step time, steps and ranks") {
  Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");  // 8 ranks
  scenario.cluster.dollars_per_rank_hour = 2;
  scenario.training.steps = 86400;
  PhasePlan plan;
  // 86,400 steps of 0.5 s are half a day: 12 h on 8 ranks are 96 rank hours, and 192 dollars.
  plan.phases.push_back(phase_cost("align", found(scenario, Seconds(0.5))));
  CHECK(plan.phases[0].phase == "align");
  CHECK(plan.phases[0].fits());
  CHECK(plan.phases[0].ranks == 8);
  CHECK(plan.phases[0].days() == doctest::Approx(0.5));
  CHECK(plan.phases[0].rank_hours() == doctest::Approx(96));
  CHECK(plan.phases[0].dollars == doctest::Approx(192));
  // 43,200 steps of 4 s are two days: 384 rank hours, 768 dollars.
  scenario.training.steps = 43200;
  plan.phases.push_back(phase_cost("tune", found(scenario, Seconds(4))));
  CHECK(plan.complete());
  plan.expected = 3;  // a search that was stopped
  CHECK_FALSE(plan.complete());
  plan.expected = 2;
  CHECK(plan.days() == doctest::Approx(2.5));
  CHECK(plan.rank_hours() == doctest::Approx(480));
  CHECK(plan.dollars() == doctest::Approx(960));
  const std::string text = phase_plan_text(plan);
  for (const char* part : {"align", "tune", "86,400", "43,200", "2.50", "480", "960", "USD"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part);
}

TEST_CASE("a phase without a layout leaves no sums, a goal's tokens give the campaign") {
  Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  PhasePlan plan;
  plan.phases.push_back(phase_cost("a", found(scenario, Seconds(1))));
  GoalSweep none = found(scenario, Seconds(1));
  none.reached.clear();
  plan.phases.push_back(phase_cost("b", none));
  CHECK_FALSE(plan.phases[1].fits());
  CHECK_FALSE(plan.complete());
  CHECK(plan.dollars() == 0);
  CHECK(phase_plan_text(plan).find("no layout fits") != std::string::npos);
  GoalSweep goal = found(scenario, Seconds(1));
  Campaign campaign;
  campaign.steps = 100;
  campaign.total = Seconds(86400);
  goal.reached.front().campaign = campaign;
  const PhaseCost cost = phase_cost("c", goal);
  CHECK(cost.campaign);
  CHECK(cost.steps == 100);
  CHECK(cost.days() == doctest::Approx(1));
}

TEST_CASE("the answer of a phased sweep conforms to its schema") {
  Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  PhasePlan plan;
  std::vector<nlohmann::json> answers;
  for (const char* name : {"a", "b"}) {
    const GoalSweep one = found(scenario, Seconds(1));
    plan.phases.push_back(phase_cost(name, one));
    answers.push_back(to_json(one));
  }
  const nlohmann::json root = nlohmann::json::parse(phase_plan_schema());
  nlohmann::json answer = to_json(plan, answers);
  CHECK(test::SchemaValidator(root).accepts(answer, root));
  CHECK(answer["days"].get<double>() == doctest::Approx(plan.days()));
  CHECK(answer["dollars"].is_null());
  for (const char* key : {"phases", "days", "rank_hours", "dollars"}) {
    nlohmann::json other = answer;
    other.erase(key);
    CHECK_FALSE(test::SchemaValidator(root).accepts(other, root));
  }
  answer["phases"][0]["sweep"].erase("ranked");
  CHECK_FALSE(test::SchemaValidator(root).accepts(answer, root));
}

}  // namespace polyphony::tests
