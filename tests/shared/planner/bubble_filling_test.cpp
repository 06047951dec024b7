#include "shared/planner/bubble_filling.h"

#include <doctest/doctest.h>

#include "shared/planner/timetable.h"
#include "shared/schedule/schedule.h"

namespace polyphony::tests {
namespace {

// Encoder and language module over two ranks, three microbatches. Forwards take 1 s (encoder) and 2
// s (language), backwards the same; messages take no time. v: encoder, l: language module.
StepCosts two_modules(Bytes capacity) {
  StepCosts costs{2, 3, {}, {capacity, capacity}};
  for (const double seconds : {1.0, 2.0}) {
    BranchCosts& branch = costs.branches.emplace_back();
    branch.name = seconds < 2 ? "vision" : "language";
    branch.rank_of_stage = {0, 1};
    branch.microbatch_of = {0, 1, 2};
    branch.costs.assign(6, {Seconds(seconds), Seconds(seconds), Seconds(0), Bytes(1)});
  }
  costs.branches[0].feeds = 1;
  return costs;
}

std::vector<Actions> language_order() {
  std::vector<Actions> orders;
  for (int p = 0; p < 2; ++p) {
    orders.push_back(schedule(ScheduleKind::one_f_one_b).order({2, 1, 3, 0}, p));
    for (Action& action : orders.back()) action.branch = 1;
  }
  return orders;
}

std::string text(const Actions& actions) {
  std::string text;
  for (const Action& action : actions)
    text += std::string(action.branch == 0 ? "v" : "l") + letter(action.kind) +
            std::to_string(action.work) + " ";
  return text;
}

}  // namespace

// If encoders ran in bubbles only, rank 1 would run vF2 at 12, when lB1 ends, and lF2 would wait
// for it until 13: 23 s. With vF2 before lF2's position (the fourth action of a rank), rank 0 runs
// vF2 at 6, lB0 at 8 and lF2 at 11; rank 1 runs vF2 from 10 to 11, between lF1 and lB1. lB2 ends at
// 17 there and at 19 on rank 0. Rank 1 runs vB0 at 17, vB1 at 18, vB2 at 19; rank 0 runs them at
// 19, 20 and 21: 22 s.
TEST_CASE("encoders fill the language module's bubbles and delay it as little as possible") {
  const StepCosts costs = two_modules(Bytes(100));
  const auto filled = fill_bubbles(costs, 1, language_order());
  REQUIRE(std::holds_alternative<std::vector<Actions>>(filled));
  const auto& orders = std::get<std::vector<Actions>>(filled);
  CHECK(text(orders[1]) == "vF0 vF1 lF0 lB0 lF1 vF2 lB1 lF2 lB2 vB0 vB1 vB2 ");
  const auto timed = timetable(costs, orders);
  REQUIRE(std::holds_alternative<Timetable>(timed));
  CHECK(std::get<Timetable>(timed).makespan.count() == doctest::Approx(22));
}

// A microbatch needs two bytes, and a rank has two: vF1 takes what lB0 has freed, lF1 waits for
// vB0.
TEST_CASE("bubbles are filled within a rank's memory") {
  const auto filled = fill_bubbles(two_modules(Bytes(2)), 1, language_order());
  REQUIRE(std::holds_alternative<std::vector<Actions>>(filled));
  CHECK(text(std::get<std::vector<Actions>>(filled)[0]) ==
        "vF0 lF0 lB0 vF1 vB0 lF1 lB1 vF2 vB1 lF2 lB2 vB2 ");
  CHECK(
      std::holds_alternative<Infeasible>(fill_bubbles(two_modules(Bytes(1)), 1, language_order())));
}

}  // namespace polyphony::tests
