#include "shared/planner/order_search.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "shared/planner/list_schedule.h"
#include "shared/random.h"

namespace polyphony {
namespace {

constexpr int kForward = StageGraph::kForward, kBackward = StageGraph::kBackward;
constexpr double kNever = std::numeric_limits<double>::infinity();
// Shares of the makespan. Tuned on a step of 64 microbatches over 8 ranks (bench_planners).
constexpr double kThreshold = 3e-4;
// Times the limit: a placement that is not below that is not worth improving, after a move, at the
// start.
constexpr double kAfterMove = 1.01, kAtStart = 1.3;
// Of the way to a turn: 1 is a pipeline in which nobody waits for a rank. The most promising first.
constexpr double kStretches[] = {1.6, 2.0, 1.3, 2.5, 1.0, 3.0, 0.6, 4.0};

Keys paced_keys(const StageGraph& graph, double stretch) {
  Keys keys;
  keys.alternate = false;
  std::vector<double> release(static_cast<std::size_t>(graph.microbatches) + 1, 0.0);
  for (std::size_t node = 0; node < graph.kept.size(); ++node)
    release[static_cast<std::size_t>(graph.microbatch[node]) + 1] +=
        (graph.seconds[kForward][node] + graph.seconds[kBackward][node]) / graph.ranks;
  std::partial_sum(release.begin(), release.end(), release.begin());
  std::array<std::vector<double>, 2> way;
  for (const int d : {kForward, kBackward}) {
    way[std::size_t(d)].assign(graph.kept.size(), 0.0);
    keys.of[std::size_t(d)].resize(graph.kept.size());
  }
  const auto fill = [&](int direction, const StageGraph::Stage& stage) {
    const auto d = std::size_t(direction);
    for (std::size_t node = stage.first; node < stage.first + std::size_t(stage.works); ++node) {
      const int k = graph.microbatch[node];
      double at = direction == kBackward ? way[kForward][node] + graph.seconds[kForward][node] : 0;
      const auto after = [&](std::size_t other) {
        at = std::max(at, way[d][other] + graph.seconds[d][other]);
      };
      const auto after_stage = [&](int other) {
        const StageGraph::Stage& of = graph.stages[std::size_t(other)];
        for (int p = graph.begin(of.branch, k); p < graph.end(of.branch, k); ++p)
          after(of.first + std::size_t(p));
      };
      if (node > stage.first && graph.microbatch[node - 1] == k) after(node - 1);
      if (direction == kForward)
        for (const int from : stage.from) after_stage(from);
      else if (stage.to >= 0)
        after_stage(stage.to);
      way[d][node] = at;
      keys.of[d][node] = release[static_cast<std::size_t>(k)] + stretch * at;
    }
  };
  for (const StageGraph::Stage& stage : graph.stages) fill(kForward, stage);
  for (std::size_t s = graph.stages.size(); s-- > 0;) fill(kBackward, graph.stages[s]);
  return keys;
}

struct Found {
  std::vector<int> microbatches;
  ListSchedule placed;
};

class Search {
 public:
  Search(const StepCosts& costs, const SearchBudget& budget) : costs_(costs), budget_(budget) {}

  FoundOrder run() {
    start();
    best_ = now_;
    while (!over() && costs_.microbatches > 0) move();
    FoundOrder found{{}, best_.microbatches, Seconds(best_.placed.makespan), placements_};
    const StageGraph graph(costs_, best_.microbatches);
    for (const auto& order : best_.placed.orders) {
      found.orders.emplace_back();
      for (const Placed& turn : order)
        found.orders.back().push_back(graph.turn(turn.direction, turn.stage, turn.place));
    }
    return found;
  }

 private:
  bool over() const {
    return placements_ >= budget_.placements || (budget_.stop && budget_.stop());
  }
  double draw() { return random_uniform(budget_.seed, drawn_++); }
  int draw(int below) { return static_cast<int>(draw() * below); }

  // A graph with both its schedulers.
  struct Desk {
    explicit Desk(const StepCosts& costs, const std::vector<int>& order)
        : graph(costs, order), mirror(graph.mirrored()), ahead(graph), back(mirror) {}
    StageGraph graph, mirror;
    ListScheduler ahead, back;
  };

  // Where a placement stands in the mirror.
  static Keys in_mirror(const StageGraph& graph, const ListSchedule& placed) {
    Keys keys;
    keys.alternate = false;
    for (auto& of : keys.of) of.resize(graph.kept.size());
    for (const StageGraph::Stage& stage : graph.stages)
      for (int p = 0; p < stage.works; ++p)
        for (const std::size_t d : {0u, 1u}) {
          const std::size_t node = stage.first + std::size_t(p);
          keys.of[1 - d][stage.first + std::size_t(stage.works - 1 - p)] =
              -(placed.start[d][node] + graph.seconds[d][node]);
        }
    return keys;
  }
  static void turn_round(const StageGraph& graph, std::vector<std::vector<Placed>>& orders) {
    for (auto& order : orders) {
      std::reverse(order.begin(), order.end());
      for (Placed& turn : order) {
        turn.direction = static_cast<std::uint8_t>(1 - turn.direction);
        turn.place = graph.stages[turn.stage].works - 1 - turn.place;
      }
    }
  }

  // Places by keys and improves; false: at `limit` or above.
  bool place(Desk& desk, const Keys& keys, double limit, double worth, ListSchedule& result) {
    ++placements_;
    if (!desk.ahead.run(keys, work_, limit * worth)) return false;
    result = work_;
    for (double before = kNever; result.makespan < before;) {
      before = result.makespan;
      placements_ += 2;
      desk.back.run(in_mirror(desk.graph, work_), mirrored_);
      turn_round(desk.graph, mirrored_.orders);
      if (!desk.ahead.follow(mirrored_.orders, work_)) break;
      if (work_.makespan < result.makespan) result = work_;
    }
    return result.makespan < limit;
  }

  void start() {
    std::vector<double> work(static_cast<std::size_t>(costs_.microbatches), 0.0);
    for (const BranchCosts& branch : costs_.branches)
      for (std::size_t i = 0; i < branch.costs.size(); ++i)
        work[static_cast<std::size_t>(branch.microbatch_of[i % branch.microbatch_of.size()])] +=
            (branch.costs[i].forward + branch.costs[i].input + branch.costs[i].weight).count();
    std::vector<int> in_turn = microbatches_in_turn(costs_), by_work = in_turn, ends = in_turn;
    std::stable_sort(by_work.begin(), by_work.end(), [&](int a, int b) {
      return work[static_cast<std::size_t>(a)] < work[static_cast<std::size_t>(b)];
    });
    for (std::size_t i = 0; i < work.size(); ++i)
      ends[i % 2 == 0 ? i / 2 : work.size() - 1 - i / 2] = by_work[i];
    now_.placed.makespan = kNever;
    for (const std::vector<int>& order : {ends, in_turn, by_work}) {
      auto desk = std::make_unique<Desk>(costs_, order);
      ListSchedule placed;
      for (const double stretch : kStretches) {
        if (now_.placed.makespan < kNever && over()) break;
        if (!place(*desk, paced_keys(desk->graph, stretch), now_.placed.makespan, kAtStart, placed))
          continue;
        now_ = {order, placed};
        stretch_ = stretch;
      }
      if (now_.microbatches == order) desk_ = std::move(desk);
    }
  }

  void move() {
    const double limit =
        now_.placed.makespan * (1 - kThreshold * std::log(draw()));  // −log: at least 0
    ListSchedule placed;
    if (draw(5) == 0 && costs_.microbatches > 1) {
      std::vector<int> order = other_order();
      auto desk = std::make_unique<Desk>(costs_, order);
      const Keys keys = draw(2) == 0
                            ? paced_keys(desk->graph, stretch_ * std::exp(0.3 * (draw() - 0.5)))
                            : carried_keys(desk->graph);
      if (!place(*desk, keys, limit, kAfterMove, placed)) return;
      now_ = {std::move(order), std::move(placed)};
      desk_ = std::move(desk);
    } else {
      if (!place(*desk_, shifted_keys(), limit, kAfterMove, placed)) return;
      now_.placed = std::move(placed);
    }
    if (now_.placed.makespan < best_.placed.makespan) best_ = now_;
  }

  // Two exchanged, neighbours or not, or one put elsewhere.
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

  // The times of what stood in each place of the order, for what stands there now.
  Keys carried_keys(const StageGraph& graph) const {
    Keys keys;
    keys.alternate = false;
    for (auto& of : keys.of) of.resize(graph.kept.size());
    for (const StageGraph::Stage& stage : graph.stages)
      for (int p = 0; p < stage.works; ++p) {
        const std::size_t node = stage.first + std::size_t(p);
        const int k = graph.microbatch[node];
        const int there = desk_->graph.begin(stage.branch, k) + p - graph.begin(stage.branch, k);
        const int last = std::max(0, desk_->graph.end(stage.branch, k) - 1);
        const auto at = stage.first + std::size_t(std::min(there, last));
        for (const std::size_t d : {0u, 1u}) keys.of[d][node] = now_.placed.start[d][at];
      }
    return keys;
  }

  Keys shifted_keys() {
    const StageGraph& graph = desk_->graph;
    Keys keys{now_.placed.start, false};
    const double all = now_.placed.makespan;
    const double by = all * std::pow(10, -1 - 2.5 * draw()) * (draw(2) == 0 ? 1 : -1);
    const double from = draw() * all, to = from + all * std::pow(10, -2 * draw());
    const int kind = draw(4);
    const auto d = std::size_t(draw(2));
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
        } else if (kind == 1) {  // one microbatch, of one branch or of all
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
  int placements_ = 0;
  double stretch_ = 1;
  std::unique_ptr<Desk> desk_;  // of now_'s order
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
