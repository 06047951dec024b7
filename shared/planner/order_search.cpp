#include "shared/planner/order_search.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "shared/planner/makespan_bound.h"
#include "shared/planner/placed_orders.h"
#include "shared/planner/search_keys.h"
#include "shared/random.h"

namespace polyphony {
namespace {

// Shares of the makespan. Tuned on a step of 64 microbatches over 8 ranks (bench_planners).
constexpr double kThreshold = 3e-4, kEqual = 1e-12;
// Factors on the limit: a placement at or above limit · factor is not improved further (after a
// move, and at the start).
constexpr double kAfterMove = 1.01, kAtStart = 1.3;
constexpr double kExchanges = 0.5;  // share of moves that exchange actions
// After (number of actions + kPatience) moves without a new best, the search restarts from the best
// order, and the next kKicks moves may be worse by kBoldness times the threshold.
constexpr int kPatience = 20, kKicks = 8;
constexpr double kBoldness = 1000;
// Factors on the path to an action: with 1 no action would wait for a busy rank. Most promising
// first.
constexpr double kStretches[] = {1.6, 2.0, 1.3, 2.5, 1.0, 3.0, 0.6, 4.0};

struct Found {
  std::vector<int> microbatches;
  ListSchedule placed;
};

class Search {
 public:
  Search(const StepCosts& costs, const SearchBudget& budget) : costs_(costs), budget_(budget) {}

  FoundOrder run() {
    start();
    keep();
    const double least = makespan_bound(costs_, budget_.apart).value().count() * (1 + kEqual);
    while (best_.placed.makespan > least && !over() && costs_.microbatches > 0) move();
    FoundOrder found{{}, best_.microbatches, Seconds(best_.placed.makespan), placements_};
    const StageGraph graph(costs_, best_.microbatches, budget_.apart);
    found.orders = actions_of(graph, best_.placed.orders);
    return found;
  }

 private:
  bool over() const {
    return placements_ >= budget_.placements || (budget_.stop && budget_.stop());
  }
  void keep() {
    best_ = now_;
    stale_ = kKicks;
    if (budget_.better) budget_.better(Seconds(best_.placed.makespan));
  }
  double draw() { return random_uniform(budget_.seed, drawn_++); }
  int draw(int below) { return static_cast<int>(draw() * below); }

  // A graph and its mirror, with a list scheduler for each.
  struct Desk {
    Desk(const StepCosts& costs, const std::vector<int>& order, bool apart)
        : graph(costs, order, apart), mirror(graph.mirrored()), ahead(graph), back(mirror) {}
    StageGraph graph, mirror;
    ListScheduler ahead, back;
  };

  // Places by keys and improves the result; returns false if it takes `limit` or longer.
  bool place(Desk& desk, const Keys& keys, double limit, double worth, ListSchedule& result) {
    ++placements_;
    if (!desk.ahead.run(keys, work_, limit * worth)) return false;
    result = work_;
    improve(desk, result);
    return result.makespan < limit;
  }

  // Improves `result`, which is the last placement of desk.ahead (also in work_).
  void improve(Desk& desk, ListSchedule& result) {
    for (double before = kNever; result.makespan < before;) {
      before = result.makespan;
      placements_ += 2;
      desk.back.run(keys_in_mirror(desk.graph, work_), mirrored_);
      turn_round(desk.graph, mirrored_.orders);
      if (!desk.ahead.follow(mirrored_.orders, work_)) break;
      if (work_.makespan < result.makespan) result = work_;
    }
  }

  void start() {
    std::vector<double> work(static_cast<std::size_t>(costs_.microbatches), 0.0);
    for (const BranchCosts& branch : costs_.branches)
      for (std::size_t i = 0; i < branch.costs.size(); ++i)
        work[static_cast<std::size_t>(branch.microbatch_of[i % branch.microbatch_of.size()])] +=
            (branch.costs[i].forward + branch.costs[i].input + branch.costs[i].weight).count();
    std::vector<int> as_given = microbatches_in_order(costs_), by_work = as_given, ends = as_given;
    std::stable_sort(by_work.begin(), by_work.end(), [&](int a, int b) {
      return work[static_cast<std::size_t>(a)] < work[static_cast<std::size_t>(b)];
    });
    for (std::size_t i = 0; i < work.size(); ++i)
      ends[i % 2 == 0 ? i / 2 : work.size() - 1 - i / 2] = by_work[i];
    now_.placed.makespan = kNever;
    for (const std::vector<int>& order : {ends, as_given, by_work}) {
      auto desk = std::make_unique<Desk>(costs_, order, budget_.apart);
      ListSchedule placed;
      for (const double stretch : kStretches)
        for (const WeightParts weights : {WeightParts::soon, WeightParts::fill}) {
          if (weights == WeightParts::fill && !budget_.apart) continue;
          if (now_.placed.makespan < kNever && over()) break;
          const Keys keys = paced_keys(desk->graph, stretch, weights);
          if (!place(*desk, keys, now_.placed.makespan, kAtStart, placed)) continue;
          now_ = {order, placed};
          stretch_ = stretch;
          weights_ = weights;
          if (budget_.better) budget_.better(Seconds(placed.makespan));
        }
      if (now_.microbatches == order) desk_ = std::move(desk);
    }
    for (const std::vector<Actions>& orders : budget_.from) begin_with(orders);
  }

  void begin_with(const std::vector<Actions>& orders) {
    const std::vector<int> order = microbatches_of(costs_, orders);
    auto desk = std::make_unique<Desk>(costs_, order, budget_.apart);
    const std::optional<PlacedOrders> placed = placed_of(desk->graph, orders);
    if (!placed) return;
    for (std::size_t r = 0; r < placed->size(); ++r)
      if (!fits(desk->graph, r, (*placed)[r])) return;
    ++placements_;
    if (!desk->ahead.follow(*placed, work_)) return;
    ListSchedule result = work_;
    improve(*desk, result);
    if (result.makespan >= now_.placed.makespan) return;
    now_ = {order, std::move(result)};
    desk_ = std::move(desk);
  }

  void move() {
    if (++stale_ > kPatience + static_cast<int>(desk_->graph.actions)) {
      stale_ = 0;
      now_ = best_;
      desk_ = std::make_unique<Desk>(costs_, now_.microbatches, budget_.apart);
    }
    const double bold = stale_ < kKicks ? kBoldness : 1;
    // −log(draw()) is at least 0.
    const double limit = now_.placed.makespan * (1 - bold * kThreshold * std::log(draw()));
    ListSchedule placed;
    if (draw() < kExchanges) {
      if (!exchanged(limit, placed)) return;
      now_.placed = std::move(placed);
    } else if (draw(5) == 0 && costs_.microbatches > 1) {
      std::vector<int> order = other_order();
      auto desk = std::make_unique<Desk>(costs_, order, budget_.apart);
      const Keys keys =
          draw(2) == 0
              ? paced_keys(desk->graph, stretch_ * std::exp(0.3 * (draw() - 0.5)), weights_)
              : carried_keys(desk_->graph, now_.placed, desk->graph);
      if (!place(*desk, keys, limit, kAfterMove, placed)) return;
      now_ = {std::move(order), std::move(placed)};
      desk_ = std::move(desk);
    } else {
      if (!place(*desk_, shifted_keys(), limit, kAfterMove, placed)) return;
      now_.placed = std::move(placed);
    }
    if (now_.placed.makespan < best_.placed.makespan) {
      keep();
    }
  }

  // Moves one action of a rank within its order. Returns false if the result takes `limit` or
  // longer, deadlocks, or does not fit in memory.
  bool exchanged(double limit, ListSchedule& result) {
    PlacedOrders orders = now_.placed.orders;
    const auto rank = std::size_t(draw(desk_->graph.ranks));
    std::vector<Placed>& order = orders[rank];
    if (order.size() < 2) return false;
    const int last = static_cast<int>(order.size()) - 1, from = draw(last + 1);
    const int far = static_cast<int>(std::pow(last, draw()));
    const int to = draw(2) == 0 ? std::max(0, from - far) : std::min(last, from + far);
    const Placed moved = order[std::size_t(from)];
    const int step = to < from ? -1 : 1;
    int at = from;
    for (; at != to; at += step) {
      const Placed& next = order[std::size_t(at + step)];
      if (next.stage == moved.stage &&
          (next.direction == moved.direction || next.place == moved.place))
        break;
      order[std::size_t(at)] = next;
    }
    if (at == from) return false;
    order[std::size_t(at)] = moved;
    if (!fits(desk_->graph, rank, order)) return false;
    ++placements_;
    if (!desk_->ahead.follow(orders, result, limit)) return false;
    return true;
  }

  // Returns an order with two microbatches (neighbors or not) exchanged, or one moved.
  std::vector<int> other_order() {
    std::vector<int> order = now_.microbatches;
    const int n = costs_.microbatches, kind = draw(3), i = draw(n);
    if (kind == 2) {
      const int moved = order[std::size_t(i)];
      order.erase(order.begin() + i);
      order.insert(order.begin() + draw(n), moved);
    } else {
      const int j = kind == 0 ? draw(n) : (i + 1) % n;
      std::swap(order[std::size_t(i)], order[std::size_t(j)]);
    }
    return order;
  }

  Keys shifted_keys() {
    const StageGraph& graph = desk_->graph;
    Keys keys{now_.placed.start, false};
    const double all = now_.placed.makespan;
    const double by = all * std::pow(10, -1 - 2.5 * draw()) * (draw(2) == 0 ? 1 : -1);
    const double from = draw() * all, to = from + all * std::pow(10, -2 * draw());
    const int kind = draw(4);
    const auto d = std::size_t(draw(budget_.apart ? 3 : 2));
    const int rank = draw(graph.ranks), k = draw(graph.microbatches);
    const auto branches = static_cast<int>(costs_.branches.size());
    const auto branch = std::size_t(draw(branches + (kind == 1 ? 1 : 0)));
    for (const StageGraph::Stage& stage : graph.stages)
      for (std::size_t node = stage.first; node < stage.first + std::size_t(stage.works); ++node) {
        const auto within = [&](double key) { return key > from && key < to; };
        double& key = keys.of[d][node];
        if (kind == 0) {
          for (auto& of : keys.of)
            if (within(of[node])) of[node] += by * (2 * draw() - 1);
        } else if (kind == 1) {  // one microbatch, in one branch or in all
          if (graph.microbatch[node] == k && (int(branch) == branches || stage.branch == branch))
            key += by;
        } else if (within(key) && (kind == 2 ? stage.rank == rank : stage.branch == branch)) {
          key += by;
        }
      }
    return keys;
  }

  const StepCosts& costs_;
  const SearchBudget& budget_;
  std::uint64_t drawn_ = 0;
  int placements_ = 0, stale_ = kKicks;
  double stretch_ = 1;
  WeightParts weights_ = WeightParts::soon;
  std::unique_ptr<Desk> desk_;  // for the order of now_
  Found now_, best_;
  ListSchedule work_, mirrored_;
};

}  // namespace

std::variant<FoundOrder, Infeasible> search_order(const StepCosts& costs,
                                                  const SearchBudget& budget) {
  if (std::string why = too_large(costs); !why.empty()) return Infeasible{why};
  return Search(costs, budget).run();
}

}  // namespace polyphony
