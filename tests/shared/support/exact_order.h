// An exhaustive search for the fastest order of a small step, and random small steps for it.
#pragma once

#include <algorithm>
#include <vector>

#include "shared/error.h"
#include "shared/planner/stage_graph.h"
#include "tests/shared/support/random_step_costs.h"

namespace polyphony::test {

// Small steps: one or two ranks, up to three microbatches of up to two parts, no messages. With at
// most kSmallActions actions the solver takes milliseconds.
inline constexpr std::size_t kSmallActions = 18;
inline StepCosts small_step_costs(std::uint64_t seed) {
  StepCosts costs = random_step_costs(seed, {2, 3, 1, 2});
  for (BranchCosts& branch : costs.branches)
    for (StageCost& cost : branch.costs) cost.message = Seconds(0);
  return costs;
}

// Tries every order of microbatches and of every rank's actions, depth first. Each action starts as
// early as the actions before it allow; split weight parts run in the order of works. Branches that
// are not better than the best so far are pruned. Capacities are respected; a deadlock ends a
// branch.
class ExactOrder {
 public:
  explicit ExactOrder(const StepCosts& costs, bool apart = false) : costs_(costs), apart_(apart) {}
  double solve(double above) {
    best_ = above;
    std::vector<int> order = microbatches_in_order(costs_);
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
      descend(graph.actions, 0);
    } while (std::next_permutation(order.begin(), order.end()));
    return best_;
  }

 private:
  // −1: not run yet.
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

  // Actions are placed in the order of their starts, so that no order is tried twice.
  void descend(std::size_t left, double now) {
    POLYPHONY_CHECK(++nodes_ <= 30'000'000, "too large for the exact solver");
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
  long nodes_ = 0;
};

}  // namespace polyphony::test
