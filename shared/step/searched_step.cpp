#include "shared/step/searched_step.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "shared/planner/bubble_filling.h"
#include "shared/planner/host_copies.h"
#include "shared/planner/memory_choice.h"
#include "shared/planner/timetable.h"
#include "shared/program/work.h"

namespace polyphony {
namespace {

const StageCosts::Way& way_of(const Branch& branch, std::size_t way) {
  const auto& ways = branch.costs.stages.value().ways;
  return ways[std::min(way, ways.size() - 1)];
}

StageCost cost_of(const StageCurves& stage, const WorkSize& size, bool apart) {
  const auto at = [&](const WorkCurve& curve) {
    if (size.tokens == 0) return 0.0;
    return curve.square * static_cast<double>(size.pairs) +
           curve.linear * static_cast<double>(size.tokens) + curve.constant;
  };
  const auto seconds = [&](const WorkCurve& curve) { return Seconds(at(curve)); };
  return {seconds(stage.forward),
          seconds(stage.input),
          seconds(stage.weight),
          Bytes(std::llround(apart ? std::max(at(stage.kept), at(stage.held)) : at(stage.kept))),
          seconds(stage.message),
          Bytes(std::llround(at(stage.moved))),
          seconds(stage.copy)};
}

void take_larger(StageCost& most, const StageCost& other) {
  most.forward = std::max(most.forward, other.forward);
  most.input = std::max(most.input, other.input);
  most.weight = std::max(most.weight, other.weight);
  most.kept = std::max(most.kept, other.kept);
  most.message = std::max(most.message, other.message);
  most.moved = std::max(most.moved, other.moved);
  most.copy = std::max(most.copy, other.copy);
}

bool has_parts(const std::vector<Actions>& orders) {
  return std::any_of(orders.begin(), orders.end(), [](const Actions& actions) {
    return std::any_of(actions.begin(), actions.end(), [](const Action& action) {
      return action.kind == ActionKind::backward_weight;
    });
  });
}

// Returns the branch that `branch` feeds, if any.
std::optional<std::size_t> fed_by(const Model& model, const Plan& plan, std::size_t branch) {
  const auto branch_of = [&](ModuleId module) {
    std::size_t b = 0;
    const ModuleId owner = grid_owner(model, module);
    while (plan.branches[b].stages.front().chunks.front().module != owner) ++b;
    return b;
  };
  for (const Edge& edge : model.edges)
    if (branch_of(edge.from) == branch && branch_of(edge.to) != branch) return branch_of(edge.to);
  return {};
}

}  // namespace

std::size_t count_ways(const Plan& plan) {
  std::size_t most = 0;
  for (const Branch& branch : plan.branches) {
    if (!branch.costs.stages) return 0;
    most = std::max(most, branch.costs.stages->ways.size());
  }
  return most;
}

namespace {

// `curves(branch, stage, work)` returns the curves by which a work is priced.
template <class Curves>
StepCosts price_works(const Model& model, const Plan& plan, const Batch& batch,
                      const StepPlan& step, const LaneGroup& lanes, bool apart, Curves curves) {
  StepCosts costs;
  costs.ranks = static_cast<int>(lanes.orders.size());
  costs.microbatches = plan.branches[plan.language].microbatches;
  costs.receive_slots = step.receive_slots;
  for (std::size_t b = 0; b < plan.branches.size(); ++b) {
    const Branch& branch = plan.branches[b];
    const ModuleId module = branch.stages.front().chunks.front().module;
    BranchCosts of;
    of.name = model.modules[module.value].name;
    of.feeds = fed_by(model, plan, b);
    const int lane = branch.lane_at(static_cast<int>(lanes.lanes[b].front()));
    const auto order_at = [&](int index) {
      const std::uint32_t order = step.order_of[branch.grid.rank_at(0, 0, lane, index).value];
      return static_cast<int>(std::lower_bound(lanes.orders.begin(), lanes.orders.end(), order) -
                              lanes.orders.begin());
    };
    for (const int index : branch.rank_of_stage) of.rank_of_stage.push_back(order_at(index));
    const auto& room = branch.costs.stages->room;
    if (!room.empty()) {
      costs.capacity.resize(static_cast<std::size_t>(costs.ranks),
                            Bytes(std::numeric_limits<std::int64_t>::max()));
      for (int p = 0; p < branch.grid.pp; ++p) {
        Bytes& least = costs.capacity[static_cast<std::size_t>(order_at(p))];
        least = std::min(least, Bytes(std::llround(room[static_cast<std::size_t>(p)])));
      }
    }
    const int parts = std::max(1, branch.microbatches / costs.microbatches);
    for (int w = 0; w < branch.microbatches; ++w) of.microbatch_of.push_back(w / parts);
    const std::size_t stages = branch.stages.size();
    const auto works = static_cast<std::size_t>(branch.microbatches);
    of.costs.resize(stages * works);
    const Range table = step.works.of_branch(b);
    for (std::uint32_t w = table.begin; w < table.end; ++w) {
      const Work& work = step.works.works[w];
      if (!lanes.has(b, work.lane)) continue;
      const WorkSize size = work_size(model, module, batch, step.works, work);
      for (std::size_t s = 0; s < stages; ++s)
        take_larger(of.costs[s * works + work.index],
                    cost_of(curves(b, s, work.index), size, apart));
    }
    costs.branches.push_back(std::move(of));
  }
  return costs;
}

}  // namespace

StepCosts step_costs(const Model& model, const Plan& plan, const Batch& batch, const StepPlan& step,
                     const LaneGroup& lanes, std::size_t way, bool apart) {
  return price_works(model, plan, batch, step, lanes, apart,
                     [&](std::size_t branch, std::size_t stage, std::uint32_t) -> const auto& {
                       return way_of(plan.branches[branch], way).stages[stage];
                     });
}

StepCosts costs_as_run(const Model& model, const Plan& plan, const Batch& batch,
                       const StepPlan& step, const LaneGroup& lanes) {
  const std::vector<Actions> orders = orders_of(step, lanes);
  std::map<std::tuple<std::size_t, std::size_t, std::uint32_t>, Recipe> recipes;
  for (const Actions& actions : orders)
    for (const Action& action : actions)
      if (is_forward(action))
        recipes[{action.branch, action.stage, static_cast<std::uint32_t>(action.work)}] =
            action.recipe;
  StepCosts costs = price_works(
      model, plan, batch, step, lanes, has_parts(orders),
      [&](std::size_t branch, std::size_t stage, std::uint32_t work) -> const auto& {
        const auto& ways = plan.branches[branch].costs.stages->ways;
        const Recipe recipe = recipes.at({branch, stage, work});
        const auto way = std::find_if(ways.begin(), ways.end(),
                                      [&](const auto& one) { return one.recipe == recipe; });
        return (way == ways.end() ? ways.front() : *way).stages[stage];
      });
  pay_for_copies(orders, costs);
  return costs;
}

namespace {

// Orders with the fastest activation policies that fit in memory, and the time when they end.
struct Candidate {
  std::vector<Actions> orders;
  Seconds makespan{};
};

// Searches the orders of one group of lanes.
class LaneSearch {
 public:
  LaneSearch(const Model& model, const Plan& plan, const Batch& batch, const StepPlan& step,
             const LaneGroup& lanes)
      : plan_(plan), own_(orders_of(step, lanes)) {
    for (std::size_t way = 0; way < count_ways(plan); ++way)
      for (const bool apart : {false, true})
        ways_[apart].push_back(step_costs(model, plan, batch, step, lanes, way, apart));
    best_ = fitted(own_);
  }

  std::vector<Actions> orders() && { return best_ ? std::move(best_->orders) : std::move(own_); }
  // Returns infinity if no known order fits in memory.
  Seconds makespan() const {
    return best_ ? best_->makespan : Seconds(std::numeric_limits<double>::infinity());
  }

  void fill() {
    const std::vector<StepCosts>& ways = ways_[has_parts(own_)];
    best_.reset();
    for (const StepCosts& costs : ways) {
      auto filled = fill_bubbles(costs, plan_.language, own_);
      if (auto* orders = std::get_if<std::vector<Actions>>(&filled)) take(std::move(*orders));
    }
  }

  void take(std::vector<Actions> orders) {
    auto other = fitted(std::move(orders));
    if (other && other->makespan < makespan()) best_ = std::move(other);
  }

  // Spends half of the budget on all policies, and half on the most promising one.
  void search(const SearchBudget& budget) {
    std::size_t best_way = 0;
    SearchBudget each = budget;
    const auto once = [&](std::size_t way, bool apart) {
      each.apart = apart;
      auto found = search_order(ways_[apart][way], each);
      auto* order = std::get_if<FoundOrder>(&found);
      const Seconds before = makespan();
      if (order) take(std::move(order->orders));
      if (makespan() < before) best_way = way;
    };
    const std::size_t count = ways_[0].size();
    each.from = {best_ ? best_->orders : own_};
    each.placements = std::max(1, budget.placements / (4 * static_cast<int>(count)));
    for (std::size_t way = 0; way < count; ++way)
      for (const bool apart : {false, true}) once(way, apart);
    if (!best_) return;
    each.from = {best_->orders};
    each.placements = budget.placements / 2;
    once(best_way, has_parts(best_->orders));
  }

 private:
  std::optional<Candidate> fitted(std::vector<Actions> orders) const {
    const std::vector<StepCosts>& ways = ways_[has_parts(orders)];
    const auto memory = choose_memory(ways, orders);
    if (!memory) return {};
    const auto timed = timetable(chosen(ways, *memory, orders), orders);
    const auto* table = std::get_if<Timetable>(&timed);
    if (!table) return {};
    for (Actions& actions : orders)
      for (Action& action : actions) {
        if (!is_forward(action)) continue;
        const Branch& branch = plan_.branches[action.branch];
        const std::size_t at = action.stage * static_cast<std::size_t>(branch.microbatches) +
                               static_cast<std::size_t>(action.work);
        action.recipe =
            way_of(branch, static_cast<std::size_t>(memory->way[action.branch][at])).recipe;
      }
    return Candidate{std::move(orders), table->makespan};
  }

  const Plan& plan_;
  std::vector<Actions> own_;
  std::array<std::vector<StepCosts>, 2> ways_;  // [0]: whole backwards, [1]: backwards in two parts
  std::optional<Candidate> best_;
};

// Searches from the slowest group on. The orders found for one group are tried for later ones, too.
void search_all(std::vector<LaneSearch>& searches,
                const std::vector<std::vector<std::uint32_t>>& orders, const SearchBudget& budget) {
  std::vector<std::size_t> slowest_first(searches.size());
  std::iota(slowest_first.begin(), slowest_first.end(), std::size_t{0});
  std::stable_sort(slowest_first.begin(), slowest_first.end(), [&](std::size_t a, std::size_t b) {
    return searches[a].makespan() > searches[b].makespan();
  });
  Seconds slowest{};
  for (std::size_t i = 0; i < searches.size(); ++i) {
    LaneSearch& search = searches[slowest_first[i]];
    for (std::size_t before = 0; before < i && search.makespan() > slowest; ++before)
      if (const std::size_t other = slowest_first[before];
          orders[other] == orders[slowest_first[i]])
        search.take(LaneSearch(searches[other]).orders());
    if (search.makespan() > slowest) search.search(budget);
    slowest = std::max(slowest, search.makespan());
  }
}

}  // namespace

void search_orders(const Model& model, const Plan& plan, const Batch& batch,
                   const SearchBudget& budget, StepPlan& step) {
  if (count_ways(plan) == 0) return;
  const LaneGroups groups = lane_groups(plan, step);
  std::vector<LaneSearch> searches;
  std::vector<std::vector<std::uint32_t>> orders;
  for (const LaneGroup& lanes : groups.groups) {
    searches.emplace_back(model, plan, batch, step, lanes);
    orders.push_back(lanes.orders);
  }
  if (budget.placements == 0)
    for (LaneSearch& search : searches) search.fill();
  else
    search_all(searches, orders, budget);
  std::vector<std::vector<Actions>> found;
  for (LaneSearch& search : searches) found.push_back(std::move(search).orders());
  put_orders(groups, std::move(found), step);
}

}  // namespace polyphony
