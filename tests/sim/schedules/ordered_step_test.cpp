// A layout's own order, verified and predicted, and orders as the text of files.
#include "sim/schedules/ordered_step.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "shared/hardware/devices.h"
#include "shared/scenario/typical_batch.h"
#include "shared/schedule/schedule.h"
#include "sim/schedules/order_text.h"
#include "sim/schedules/schedules_json.h"
#include "sim/schedules/stage_times.h"
#include "tests/shared/support/scenario_files.h"

namespace polyphony::tests {
namespace {

using namespace sim;

TimedAction timed(ActionKind kind, std::uint16_t branch, int work) {
  Action action = make_action(kind, 0, work);
  action.branch = branch;
  return {action, {}, {}};
}

}  // namespace

// 1F1B of 16 microbatches on the six ranks of the language module: rank p holds the activations of
// 6 - p microbatches, runs 16 forwards and 16 backwards, and rank 0 rests 5 · (1 + 2) units, from
// its last warm-up forward on.
TEST_CASE("1F1B rests for one forward and one backward of each further stage") {
  const Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  const auto outcome = order_step(scenario, *scenario.layout, typical_batch(scenario),
                                  *shipped_profile(scenario.cluster));
  const auto& step = std::get<OrderedStep>(outcome);
  CHECK(step.bubble == 15);
  REQUIRE(step.ranks.size() == 6);
  for (int p = 0; p < 6; ++p) {
    const OrderedRank& rank = step.ranks[static_cast<std::size_t>(p)];
    CHECK(rank.stages == std::to_string(p));
    CHECK(rank.actions == 32);
    CHECK(rank.tapes == 6 - p);
  }
  const nlohmann::json json = to_json(step);
  CHECK(json["bubble_actions"] == 15);
  CHECK(json["step_seconds"] == step.figures.step.count());
  CHECK(json["pipeline_ranks"].size() == 6);
}

// Rank 0 runs each backward right after its forward, all others one forward ahead: rank 1 waits for
// a forward that rank 0 runs only after the backward that rank 1 has not sent.
TEST_CASE("an order whose ranks wait for each other is illegal") {
  Scenario scenario = test::scenario_at("scenarios/rehearse_8.json");
  for (int p = 0; p < 6; ++p) {
    Actions& actions = scenario.layout->actions.emplace_back();
    for (int k = 0, ahead = 0; k < 16; ++k) {
      for (; ahead <= std::min(15, k + (p > 0 ? 1 : 0)); ++ahead)
        actions.push_back(make_action(ActionKind::forward, p, ahead));
      actions.push_back(make_action(ActionKind::backward, p, k));
    }
  }
  const auto outcome = order_step(scenario, *scenario.layout, typical_batch(scenario),
                                  *shipped_profile(scenario.cluster));
  REQUIRE(std::holds_alternative<IllegalOrder>(outcome));
  CHECK_FALSE(std::get<IllegalOrder>(outcome).why.empty());
}

// Two stages, two microbatches, every action one unit: F0 0-1 and F1 1-2 on rank 0, F0 1-2, B0 2-3,
// F1 3-4, B1 4-5 on rank 1, so B0 3-4 and B1 5-6 on rank 0.
TEST_CASE("cells of one column of the CSV run at the same time") {
  const auto action = [](ActionKind kind, int stage, int work) {
    return make_action(kind, stage, work);
  };
  using enum ActionKind;
  CHECK(columns_csv({{action(forward, 0, 0), action(forward, 0, 1), action(backward, 0, 0),
                      action(backward, 0, 1)},
                     {action(forward, 1, 0), action(backward, 1, 0), action(forward, 1, 1),
                      action(backward, 1, 1)}}) == "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n");
}

TEST_CASE("actions of several modules name them, and parts of microbatches") {
  ComparedSchedule row;
  row.costs.microbatches = 2;
  row.costs.branches.resize(2);
  row.costs.branches[0].name = "vision";
  row.costs.branches[0].microbatch_of = {0, 1, 1};  // microbatch 1 has two parts
  row.costs.branches[1].name = "language";
  row.costs.branches[1].microbatch_of = {0, 1};
  row.table.ranks = {{timed(ActionKind::forward, 0, 0), timed(ActionKind::forward, 0, 2)},
                     {timed(ActionKind::backward, 1, 1)}};
  CHECK(order_text(row, true) == "vision 0F0.0,vision 0F1.1\nlanguage 0B1\n");
  row.costs.branches.resize(1);
  row.table.ranks.pop_back();
  row.table.ranks[0].pop_back();
  CHECK(order_text(row, true) == "0F0\n");
  CHECK(order_text(row, false).starts_with("polyphony actions 1\nF0.0\n"));
}

TEST_CASE("a table of times has bytes if any forward saves some") {
  const std::string head = "module,stage,microbatch,forward,backward_input,backward_weight,bytes\n";
  CHECK_FALSE(has_bytes(read_stage_times(head + "language,0,all,1,1,1,0\n", "t.csv", 2)));
  CHECK(has_bytes(read_stage_times(head + "language,0,all,1,1,1,5\n", "t.csv", 2)));
}

}  // namespace polyphony::tests
