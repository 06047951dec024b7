// Synthetic jobs compared with a prediction of 1 s (0.9 to 1.1 s).
#include "sim/evidence/watch.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "shared/error.h"
#include "sim/shown_runs/watch_text.h"

namespace polyphony::sim {
namespace {

Expected expected() {
  Expected one{Seconds(1), Seconds(0.9), Seconds(1.1), 100, {}};
  one.phases = {{"forward", Seconds(0.3)}, {"backward", Seconds(0.6)}, {"optimizer", Seconds(0.1)}};
  return one;
}

std::vector<WatchedStep> steps(std::vector<std::pair<int, double>> parts) {
  std::vector<WatchedStep> list;
  for (const auto& [count, seconds] : parts)
    for (int i = 0; i < count; ++i)
      list.push_back({static_cast<std::int64_t>(list.size()), Seconds(seconds), {}});
  return list;
}

}  // namespace

TEST_CASE("single slow steps and a slow first step do not make a job leave the interval") {
  auto job = steps({{1, 30}, {40, 1.05}});
  job[12].time = Seconds(20);
  job[30].time = Seconds(9);
  const WatchReport report = watch(expected(), job);
  CHECK(report.warm_up == 1);
  CHECK_FALSE(report.left());
  CHECK(report.events.empty());
  CHECK(report.typical == Seconds(1.05));
}

TEST_CASE("a job that becomes slow leaves the interval, detected eight steps later, and returns") {
  // Steps 0 to 20 of 1.05 s, 21 to 40 of 1.3, then 1.05 again. The eighth step outside is step 28;
  // of the ten up to it the first outside is 21. Back: the eighth inside is step 48, the first of
  // them 41.
  const WatchReport report = watch(expected(), steps({{21, 1.05}, {20, 1.3}, {20, 1.05}}));
  std::vector<WatchEvent> sides;
  for (const WatchEvent& event : report.events)
    if (event.what != WatchEvent::What::drifted) sides.push_back(event);
  REQUIRE(sides.size() == 2);
  CHECK(sides[0].what == WatchEvent::What::left);
  CHECK(sides[0].step == 21);
  CHECK(sides[0].told == 28);
  CHECK(sides[0].ratio == doctest::Approx(1.3));
  CHECK(sides[1].what == WatchEvent::What::back);
  CHECK(sides[1].step == 41);
  CHECK(sides[1].told == 48);
  CHECK(report.left());
  CHECK_FALSE(report.outside);
  CHECK(event_text(sides[0]) ==
        "step 21: LEFT the predicted interval, +30.0 % compared with the prediction (detected at "
        "step "
        "28)");
}

TEST_CASE("a job that is too fast has left the interval, too") {
  const WatchReport report = watch(expected(), steps({{15, 0.5}}));
  REQUIRE(report.left());
  CHECK(report.outside);
  CHECK(report.events[0].step == 1);
  CHECK(report.events[0].told == 10);
}

TEST_CASE("the phase that deviates most is named") {
  auto job = steps({{15, 1.5}});
  // Forward as predicted, backward 0.2 s longer, optimizer 0.3 s.
  for (WatchedStep& step : job)
    step.phases = {
        {"forward", Seconds(0.3)}, {"backward", Seconds(0.8)}, {"optimizer", Seconds(0.4)}};
  CHECK(watch(expected(), job).events.at(0).phase == "optimizer");
}

TEST_CASE("a change inside the interval is detected against the job's own steps") {
  // Baseline steps 1 to 20 of 1 s, deviation 1 % at least. From step 30 on 1.04 s: x = ln 1.04 /
  // 0.01, clipped to 3; S grows by 2.5 a step and passes 10 with the fifth, step 34.
  const WatchReport report = watch(expected(), steps({{30, 1}, {10, 1.04}}));
  REQUIRE(report.events.size() == 1);
  CHECK(report.events[0].what == WatchEvent::What::drifted);
  CHECK(report.events[0].step == 30);
  CHECK(report.events[0].told == 34);
  CHECK(report.events[0].ratio == doctest::Approx(1.04));
  CHECK_FALSE(report.left());
}

TEST_CASE("slow ranks are named if the log has ranks") {
  const std::vector<Seconds> usual(10, Seconds(1)), slow(10, Seconds(1.2));
  const WatchReport report =
      watch(expected(), steps({{12, 1}}), {{0, usual}, {1, slow}, {2, usual}, {3, {Seconds(9)}}});
  REQUIRE(report.events.size() == 1);
  CHECK(report.events[0].rank == 1);
  CHECK(report.events[0].ratio == doctest::Approx(1.2));
  CHECK_FALSE(report.left());
}

TEST_CASE("predictions are read from simulate's answer, anything else is rejected") {
  const Expected read = read_expected(
      R"({"step_seconds": 2.5, "chance": {"interval90_seconds": [2, 3]},
          "tokens_per_second_per_rank": 10, "busiest_rank_seconds": {"forward": 1}})",
      "p.json");
  CHECK(read.low == Seconds(2));
  CHECK(read.phases.at("forward") == Seconds(1));
  for (const char* text : {"", "[]", "{}", "{\"step_seconds\": \"x\"}",
                           R"({"step_seconds": 5, "chance": {"interval90_seconds": [2, 3]},
                               "tokens_per_second_per_rank": 1, "busiest_rank_seconds": {}})"})
    CHECK_THROWS_AS(read_expected(text, "p.json"), InputError);
}

TEST_CASE("the report's JSON matches its schema") {
  const WatchReport report = watch(expected(), steps({{15, 1.5}}));
  const nlohmann::json json = to_json(report, expected());
  CHECK(json["left"] == true);
  CHECK(json["events"][0]["phase"].is_null());
  const auto schema = nlohmann::json::parse(watch_schema());
  for (const auto& key : schema["required"]) CHECK(json.contains(key.get<std::string>()));
}

}  // namespace polyphony::sim
