// The order search and the makespan bound, both compared with an exact solver on small steps.
#include "shared/planner/order_search.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "shared/planner/list_schedule.h"
#include "shared/planner/makespan_bound.h"
#include "shared/planner/timetable.h"
#include "tests/shared/support/exact_order.h"
#include "tests/shared/support/random_step_costs.h"

namespace polyphony::tests {
namespace {

FoundOrder search(const StepCosts& costs, int placements, bool apart = false) {
  auto outcome = search_order(costs, {.seed = 1, .placements = placements, .apart = apart});
  REQUIRE(std::holds_alternative<FoundOrder>(outcome));
  return std::get<FoundOrder>(outcome);
}
}  // namespace

TEST_SUITE("order search") {
  TEST_CASE("small steps: the search finds the optimum, and the bound is below it") {
    int solved = 0;
    for (std::uint64_t seed = 0; solved < 60; ++seed) {
      const StepCosts costs = test::small_step_costs(seed);
      if (StageGraph(costs, microbatches_in_order(costs)).actions > test::kSmallActions) continue;
      ++solved;
      CAPTURE(seed);
      const FoundOrder found = search(costs, 3000);
      const double best = test::ExactOrder(costs).solve(found.makespan.count() + 1);
      CHECK(found.makespan.count() == doctest::Approx(best).epsilon(1e-9));
      CHECK(makespan_bound(costs).value().count() <= best * (1 + 1e-9));
    }
  }

  TEST_CASE(
      "small steps with split backwards: the search finds the optimum, and the bound is below it") {
    int solved = 0;
    for (std::uint64_t seed = 0; solved < 60; ++seed) {
      const StepCosts costs = test::small_step_costs(seed);
      if (StageGraph(costs, microbatches_in_order(costs), true).actions > test::kSmallActions)
        continue;
      ++solved;
      CAPTURE(seed);
      const FoundOrder found = search(costs, 3000, true);
      const double best = test::ExactOrder(costs, true).solve(found.makespan.count() + 1);
      CHECK(found.makespan.count() == doctest::Approx(best).epsilon(1e-9));
      CHECK(makespan_bound(costs, true).value().count() <= best * (1 + 1e-9));
      CHECK(found.makespan <= search(costs, 3000).makespan * (1 + 1e-9));
    }
  }

  TEST_CASE(
      "the found makespan is that of its orders, fits in memory, and is no worse than the start") {
    for (std::uint64_t seed = 0; seed < 120; ++seed) {
      CAPTURE(seed);
      const bool apart = seed % 2 == 1;
      const StepCosts costs = test::random_step_costs(seed / 2);
      const FoundOrder start = search(costs, 1, apart), found = search(costs, 400, apart);
      const auto outcome = timetable(costs, found.orders);
      REQUIRE(std::holds_alternative<Timetable>(outcome));
      const auto& table = std::get<Timetable>(outcome);
      CHECK(table.makespan.count() == doctest::Approx(found.makespan.count()).epsilon(1e-12));
      for (std::size_t r = 0; r < costs.capacity.size(); ++r)
        CHECK(table.peak[r] <= costs.capacity[r]);
      CHECK(found.makespan <= start.makespan);
      CHECK(makespan_bound(costs, apart).value().count() <= found.makespan.count() * (1 + 1e-12));
      CHECK(search(costs, 400, apart).orders == found.orders);  // deterministic
    }
  }

  TEST_CASE("a microbatch that exceeds a rank's memory is infeasible") {
    StepCosts costs = test::random_step_costs(3);
    costs.capacity.assign(std::size_t(costs.ranks), Bytes(0));
    CHECK(std::holds_alternative<Infeasible>(search_order(costs, {.placements = 10})));
  }
}

TEST_SUITE("makespan bound") {
  // Heads 0 and 1, lengths 4 and 2, tails 1 and 5: the second interrupts the first at 1, ends at 3
  // and its tail at 8; the first ends at 6, its tail at 7.
  TEST_CASE("one machine with preemption: 8 by hand") {
    CHECK(preemptive_makespan({{0, 4, 1}, {1, 2, 5}}) == 8);
    CHECK(preemptive_makespan({}) == 0);
  }

  // Four equal stages, 8 microbatches, forward 1, backward 2: 1F1B's 33 s is the last rank's work,
  // 24, between 3 forwards before it and 3 backwards after it. With split backwards its own weight
  // parts fill the time after it: 3 + 24.
  TEST_CASE("1F1B of equal stages is at the bound; memory for one microbatch adds up") {
    StepCosts costs{
        4, 8, {BranchCosts{"language", {0, 1, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7}, {}}}, {}};
    costs.branches[0].costs.assign(32, {Seconds(1), Seconds(1), Seconds(1), Bytes(1)});
    CHECK(makespan_bound(costs).value() == Seconds(33));
    CHECK(makespan_bound(costs).path == Seconds(12));
    CHECK(makespan_bound(costs, true).value() == Seconds(27));
    costs.capacity.assign(4, Bytes(1));  // the first rank holds each microbatch for 12 s
    CHECK(makespan_bound(costs).memory == Seconds(96));
    CHECK(search(costs, 20).makespan == Seconds(96));
  }
}

}  // namespace polyphony::tests
