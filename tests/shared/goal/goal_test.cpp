// The key "goal" of a scenario: reading, errors, printing.
#include "shared/goal/goal.h"

#include <doctest/doctest.h>

#include "shared/scenario_io/scenario_json.h"
#include "tests/shared/support/scenario_files.h"

using namespace polyphony;

namespace {

std::string with_goal(const std::string& goal, const std::string& more = "") {
  return R"({"polyphony": 1, "extends": "scenarios/tiny.json",
             "about": "tiny.json with a goal; its arithmetic and its source are found there.",
             "goal": )" +
         goal + more + "}";
}
Goal read(const std::string& goal, const std::string& more = "") {
  const Scenario scenario = read_scenario(with_goal(goal, more), "goal.json", test::file_text);
  const Scenario again = read_scenario(resolved_text(scenario), "goal.json", test::file_text);
  CHECK(again.goal == scenario.goal);
  return scenario.goal;
}

const std::string kPrice = R"(, "cluster": {"price": "2USD/GPUh"})";

}  // namespace

TEST_CASE("a goal is read and printed") {
  CHECK(read("{}") == Goal{});
  const Goal goal = read(R"({"objective": ["days", "dollars"], "nodes": [1], "tokens": 1e12,
      "global_batch_within": 0.05,
      "failures": {"every": "1000h", "checkpoint_rate": "2GBps", "restart": "5min"}})",
                         kPrice);
  CHECK(goal.objectives == std::vector{Objective::days, Objective::dollars});
  CHECK(goal.nodes == std::vector{1});
  CHECK(goal.tokens == 1e12);
  CHECK(goal.global_batch_within == 0.05);
  CHECK(goal.failures.every == Seconds(3.6e6));
  CHECK(goal.failures.checkpoint_rate == BytesPerSecond(2e9));
  CHECK(goal.failures.restart == Seconds(300));
  CHECK(read(R"({"objective": "tokens_per_gpu", "nodes": 1})").objectives ==
        std::vector{Objective::tokens_per_gpu});
}

TEST_CASE("a goal that is not possible is refused, naming the key") {
  const auto refusal = [](const std::string& goal, const std::string& more = "") {
    return test::refusal(with_goal(goal, more));
  };
  for (const auto& [goal, words] : std::vector<std::pair<std::string, std::string>>{
           {R"({"objective": "cheap"})", "/goal/objective"},
           {R"({"objective": "memory"})", R"("memory" must be combined with another objective)"},
           {R"({"objective": ["step", "step"]})", "the two objectives are the same"},
           {R"({"objective": ["step", "days", "p95"], "tokens": 1e9})", "/goal/objective"},
           {R"({"objective": "days"})", "\"tokens\" is missing"},
           {R"({"objective": "p95"})", "p95 needs data that vary: all samples have the same size"},
           {R"({"nodes": [1, 65]})", "nodes must be at most"},
           {R"({"nodes": []})", "/goal/nodes"},
           {R"({"global_batch_within": 0.9})", "/goal/global_batch_within"},
           {R"({"tokens": 0})", "/goal/tokens"},
           {R"({"failures": {"every": "1s"}})", "/goal/failures/every"},
           {R"({"failures": {"restart": 5}})", "/goal/failures/restart"}}) {
    CAPTURE(goal);
    CHECK(refusal(goal).find(words) != std::string::npos);
  }
}
