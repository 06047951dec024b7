// The search over orders, its bound, both beside an exact solver on steps small enough.
#include "shared/planner/order_search.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "shared/planner/list_schedule.h"
#include "shared/planner/makespan_bound.h"
#include "shared/planner/timetable.h"
#include "tests/shared/support/random_step_costs.h"

namespace polyphony::tests {
namespace {

// Tries every order of microbatches and of every rank's turns, depth first, each turn as early as
// the turns before it let it (weight parts, where backwards are apart, in the order of works); leaves what cannot be better than the best so far. Capacities are kept
// as they are filled: what deadlocks is a dead end.
class Exact {
 public:
  explicit Exact(const StepCosts& costs, bool apart = false) : costs_(costs), apart_(apart) {}
  double solve(double above) {
    best_ = above;
    std::vector<int> order = microbatches_in_turn(costs_);
    do {
      const StageGraph graph(costs_, order, apart_);
      graph_ = &graph;
      left_.assign(std::size_t(graph.ranks), 0);
      for (const StageGraph::Stage& stage : graph.stages)
        for (const std::size_t d : {0u, 1u, 2u})
          for (int p = 0; stage.runs[d] && p < stage.works; ++p)
            left_[std::size_t(stage.rank)] += graph.seconds[d][stage.first + std::size_t(p)];
      for (auto& ends : end_) ends.assign(graph.kept.size(), -1);
      for (auto& next : next_) next.assign(graph.stages.size(), 0);
      free_.assign(std::size_t(graph.ranks), 0);
      held_.assign(std::size_t(graph.ranks), 0);
      descend(graph.turns, 0);
    } while (std::next_permutation(order.begin(), order.end()));
    return best_;
  }
  long nodes = 0;

 private:
  // −1: not yet.
  double ready(std::size_t d, std::size_t s) const {
    const StageGraph::Stage& stage = graph_->stages[s];
    const std::size_t node = stage.first + std::size_t(next_[d][s]);
    const int k = graph_->microbatch[node];
    double at = 0;
    const auto after = [&](int other) {
      const StageGraph::Stage& of = graph_->stages[std::size_t(other)];
      if (!of.runs[d]) return true;
      for (int p = graph_->begin(of.branch, k); p < graph_->end(of.branch, k); ++p) {
        const double end = end_[d][of.first + std::size_t(p)];
        if (end < 0) return false;
        at = std::max(at, end);
      }
      return true;
    };
    if (d == 2) return end_[1][node];
    if (d == 0) {
      for (const int from : stage.from)
        if (!after(from)) return -1;
    } else {
      if (end_[0][node] < 0) return -1;
      at = end_[0][node];
      if (stage.to >= 0 && !after(stage.to)) return -1;
    }
    return at;
  }

  // Turns are placed in the order of their starts, so that no order of the ranks comes up twice.
  void descend(std::size_t left, double now) {
    if (++nodes > 30'000'000) FAIL("too large for the exact solver");
    if (left == 0) {
      best_ = std::min(best_, *std::max_element(free_.begin(), free_.end()));
      return;
    }
    for (std::size_t r = 0; r < free_.size(); ++r)
      if (std::max(free_[r], left_[r] > 0 ? now : 0.0) + left_[r] >= best_ - 1e-9) return;
    for (std::size_t s = 0; s < graph_->stages.size(); ++s)
      for (const std::size_t d : {1u, 0u, 2u}) {
        const StageGraph::Stage& stage = graph_->stages[s];
        if (!stage.runs[d] || next_[d][s] == stage.works) continue;
        const double at = ready(d, s);
        if (at < 0) continue;
        const auto r = std::size_t(stage.rank);
        const std::size_t node = stage.first + std::size_t(next_[d][s]);
        const std::int64_t kept = int(d) == stage.takes   ? graph_->kept[node]
                                  : int(d) == stage.gives ? -graph_->kept[node]
                                                          : 0;
        const double start = std::max(at, free_[r]), length = graph_->seconds[d][node];
        if (start < now || held_[r] + kept > graph_->capacity[r]) continue;
        const double free = free_[r];
        free_[r] = end_[d][node] = start + length;
        held_[r] += kept;
        left_[r] -= length;
        ++next_[d][s];
        descend(left - 1, start);
        --next_[d][s];
        left_[r] += length;
        held_[r] -= kept;
        end_[d][node] = -1;
        free_[r] = free;
      }
  }

  const StepCosts& costs_;
  bool apart_;
  const StageGraph* graph_ = nullptr;
  std::array<std::vector<double>, 3> end_;
  std::array<std::vector<int>, 3> next_;
  std::vector<double> free_, left_;
  std::vector<std::int64_t> held_;
  double best_ = 0;
};

FoundOrder search(const StepCosts& costs, int placements, bool apart = false) {
  auto outcome = search_order(costs, {.seed = 1, .placements = placements, .apart = apart});
  REQUIRE(std::holds_alternative<FoundOrder>(outcome));
  return std::get<FoundOrder>(outcome);
}
StepCosts small(std::uint64_t seed) {
  StepCosts costs = test::random_step_costs(seed, {2, 3, 1, 2});
  for (BranchCosts& branch : costs.branches)
    for (StageCost& cost : branch.costs) cost.message = Seconds(0);
  return costs;
}

}  // namespace

TEST_SUITE("order search") {
  TEST_CASE("small steps: the search finds the optimum, and the bound is below it") {
    int solved = 0;
    for (std::uint64_t seed = 0; solved < 60; ++seed) {
      const StepCosts costs = small(seed);
      if (StageGraph(costs, microbatches_in_turn(costs)).turns > 18) continue;
      ++solved;
      CAPTURE(seed);
      const FoundOrder found = search(costs, 3000);
      const double best = Exact(costs).solve(found.makespan.count() + 1);
      CHECK(found.makespan.count() == doctest::Approx(best).epsilon(1e-9));
      CHECK(makespan_bound(costs).value().count() <= best * (1 + 1e-9));
    }
  }

  TEST_CASE("small steps whose backwards are apart: the same") {
    int solved = 0;
    for (std::uint64_t seed = 0; solved < 60; ++seed) {
      const StepCosts costs = small(seed);
      if (StageGraph(costs, microbatches_in_turn(costs), true).turns > 18) continue;
      ++solved;
      CAPTURE(seed);
      const FoundOrder found = search(costs, 3000, true);
      const double best = Exact(costs, true).solve(found.makespan.count() + 1);
      CHECK(found.makespan.count() == doctest::Approx(best).epsilon(1e-9));
      CHECK(makespan_bound(costs, true).value().count() <= best * (1 + 1e-9));
      CHECK(found.makespan <= search(costs, 3000).makespan * (1 + 1e-9));
    }
  }

  TEST_CASE("what is found is what its orders take, fits, and is no worse than the start") {
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
      CHECK(search(costs, 400, apart).orders == found.orders);  // the same again
    }
  }

  TEST_CASE("a microbatch that no rank can hold is refused") {
    StepCosts costs = test::random_step_costs(3);
    costs.capacity.assign(std::size_t(costs.ranks), Bytes(0));
    CHECK(std::holds_alternative<Infeasible>(search_order(costs, {.placements = 10})));
  }
}

TEST_SUITE("makespan bound") {
  // Heads 0 and 1, lengths 4 and 2, tails 1 and 5: the second interrupts the first at 1, ends at 3
  // and its tail at 8; the first ends at 6, its tail at 7.
  TEST_CASE("one machine, interrupted: 8 by hand") {
    CHECK(preemptive_makespan({{0, 4, 1}, {1, 2, 5}}) == 8);
    CHECK(preemptive_makespan({}) == 0);
  }

  // Four equal stages, 8 microbatches, forward 1, backward 2: 1F1B's 33 s is the last rank's work,
  // 24, between 3 forwards before it and 3 backwards after it. With weights apart its own fill the
  // time after it: 3 + 24.
  TEST_CASE("1F1B of equal stages is at the bound; memory for one microbatch adds up") {
    StepCosts costs{
        4, 8, {BranchCosts{"language", {0, 1, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7}, {}}}, {}};
    costs.branches[0].costs.assign(32, {Seconds(1), Seconds(1), Seconds(1), Bytes(1)});
    CHECK(makespan_bound(costs).value() == Seconds(33));
    CHECK(makespan_bound(costs).path == Seconds(12));
    CHECK(makespan_bound(costs, true).value() == Seconds(27));
    costs.capacity.assign(4, Bytes(1));  // each microbatch is held for 12 s by the first rank
    CHECK(makespan_bound(costs).memory == Seconds(96));
    CHECK(search(costs, 20).makespan == Seconds(96));
  }
}

}  // namespace polyphony::tests
