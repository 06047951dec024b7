// The published JSON Schemas of answers accept answers as they are printed, and nothing else.
#include "sim/answer_json/answer_schema.h"

#include <doctest/doctest.h>

#include "shared/hardware/devices.h"
#include "sim/answer_json/answers_json.h"
#include "sim/sweep/sweep.h"
#include "tests/shared/support/example_models.h"
#include "tests/shared/support/scenario_files.h"
#include "tests/shared/support/schema_validator.h"

namespace polyphony::tests {
namespace {

using namespace sim;
using nlohmann::json;

Sweep small_sweep(Scenario& scenario, Predictor predictor) {
  scenario.layout.reset();
  scenario.search = examples::few_choices(scenario.model.modules.size());
  scenario.search->microbatch = {1};
  SweepOptions options;
  options.predictor = predictor;
  return sweep(scenario, *find_profile(default_profile("H100")), options);
}

bool accepts(const std::string& schema, const json& answer) {
  const json root = json::parse(schema);
  return test::SchemaValidator(root).accepts(answer, root);
}

}  // namespace

TEST_CASE("answers of a sweep conform to their schema, which constrains every key") {
  for (const Predictor predictor : {Predictor::estimate, Predictor::simulate}) {
    Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
    const Sweep result = small_sweep(scenario, predictor);
    REQUIRE(result.ranked.size() > 5);
    REQUIRE_FALSE(result.baselines.empty());
    json answer = to_json(result, scenario.model);
    CHECK(accepts(sweep_schema(), answer));
    for (const auto& [key, value] : answer.items()) {
      CAPTURE(key);
      json other = answer;
      other.erase(key);
      CHECK_FALSE(accepts(sweep_schema(), other));
      other[key] = {{"no", "such"}};
      CHECK(accepts(sweep_schema(), other) == false);
    }
    const json row = answer["ranked"][0];
    for (const auto& [key, value] : row.items()) {
      CAPTURE(key);
      json other = answer;
      other["ranked"] = {row};
      other["ranked"][0][key] = {{"no", "such"}};
      CHECK_FALSE(accepts(sweep_schema(), other));
    }
    answer["another"] = 1;
    CHECK_FALSE(accepts(sweep_schema(), answer));
  }
}

TEST_CASE("the empty answer and an answer with --set conform to the schema") {
  const Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  json answer = to_json(Sweep{}, scenario.model);
  CHECK(accepts(sweep_schema(), answer));
  WhatIf what_if{{"cluster.nic=100Gbps"}, {{}, "no layout fits", ""}, {}};
  answer.update(to_json(what_if));
  CHECK(accepts(sweep_schema(), answer));
  what_if.unchanged = {Figures{}, "", "TP2"};
  what_if.unchanged.figures->step = Seconds(2);
  answer.update(to_json(what_if));
  CHECK(accepts(sweep_schema(), answer));
  answer["unchanged"].erase("fits");
  CHECK_FALSE(accepts(sweep_schema(), answer));
}

TEST_CASE("answers of --vary conform to their schema, also those without a layout") {
  Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  Varied varied{{{"cluster.nic", {"1Gbps", "2Gbps"}}}, {}};
  varied.asked.push_back(
      {{"1Gbps"}, "", small_sweep(scenario, Predictor::estimate), scenario.model});
  varied.asked.push_back({{"2Gbps"}, "no layout fits", {}, scenario.model});
  const json answer = to_json(varied);
  CHECK(accepts(vary_schema(), answer));
  CHECK(answer["questions"][0]["best"]["step_seconds"] ==
        answer["questions"][0]["step_seconds"]
              [answer["questions"][0]["best"]["placement"].get<std::string>()]);
  CHECK(answer["questions"][1]["best"].is_null());
  for (const char* key : {"variations", "questions"}) {
    json other = answer;
    other.erase(key);
    CHECK_FALSE(accepts(vary_schema(), other));
  }
  json other = answer;
  other["questions"][0]["best"].erase("tied");
  CHECK_FALSE(accepts(vary_schema(), other));
}

TEST_CASE("a breakdown adds up to the step, and changes are relative to the first baseline") {
  Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  const Sweep result = small_sweep(scenario, Predictor::simulate);
  const json answer = to_json(result, scenario.model);
  const double baseline = answer["baselines"][0]["step_seconds"];
  int divided = 0;
  for (const json& row : answer["ranked"]) {
    const double step = row["step_seconds"];
    if (row.contains("breakdown_seconds")) {
      double sum = 0;
      for (const json& part : row["breakdown_seconds"]) sum += part.get<double>();
      CHECK(sum == doctest::Approx(step));
      ++divided;
    }
    CHECK(row["step_change"].get<double>() == doctest::Approx(step / baseline - 1));
    if (!row.contains("step_change90")) continue;
    CHECK(row["step_change90"][0].get<double>() <= row["step_change"].get<double>());
    CHECK(row["step_change90"][1].get<double>() >= row["step_change"].get<double>());
  }
  CHECK(divided >= 3);
  CHECK(answer["baselines"][0]["step_change"] == 0);
  CHECK(answer["baselines"][0]["breakdown_seconds"].contains("bubble"));
}

}  // namespace polyphony::tests
