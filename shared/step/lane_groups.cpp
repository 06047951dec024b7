#include "shared/step/lane_groups.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace polyphony {
namespace {

class Grouping {
 public:
  Grouping(const Plan& plan, const StepPlan& step) : plan_(plan), step_(step) {
    std::size_t lanes = 0;
    for (const Branch& branch : plan.branches) {
      first_lane_.push_back(lanes);
      lanes += static_cast<std::size_t>(branch.lanes());
    }
    root_.resize(lanes);
    std::iota(root_.begin(), root_.end(), std::size_t{0});
  }

  LaneGroups run() {
    join_ranks();
    join_samples();
    LaneGroups groups = grouped();
    const bool lacks =
        std::any_of(groups.groups.begin(), groups.groups.end(), [](const LaneGroup& group) {
          return std::any_of(group.lanes.begin(), group.lanes.end(),
                             [](const auto& lanes) { return lanes.empty(); });
        });
    if (!lacks && !meet_by_actions()) return groups;
    for (std::size_t lane = 1; lane < root_.size(); ++lane) join(0, lane);
    return grouped();
  }

 private:
  std::size_t root(std::size_t lane) const {
    while (root_[lane] != lane) lane = root_[lane];
    return lane;
  }
  void join(std::size_t one, std::size_t other) {
    const std::size_t a = root(one), b = root(other);
    root_[std::max(a, b)] = std::min(a, b);
  }
  // Calls use(lane) for each lane that the rank belongs to, one per branch at most.
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  template <class Use>
  void each_lane(Rank rank, Use use) const {
    for (std::size_t b = 0; b < plan_.branches.size(); ++b) {
      const Branch& branch = plan_.branches[b];
      const int place = branch.place_of(rank);
      if (place < 0) continue;
      const int lane = place / (branch.grid.tp * branch.grid.cp) % branch.grid.dp();
      use(first_lane_[b] + static_cast<std::size_t>(branch.lane_index(lane)));
    }
  }

  bool meet_by_actions() const {
    return std::any_of(plan_.branches.begin(), plan_.branches.end(), [](const Branch& branch) {
      return branch.folded() || (branch.grid.shard >= Shard::gradients && branch.grid.dp() > 1);
    });
  }

  void join_ranks() {
    if (meet_by_actions()) return;  // one group anyway; a folded plan has no lanes at some places
    for (const std::vector<Rank>& set : rank_sets(plan_)) {
      std::size_t first = kNone;
      for (const Rank rank : set)
        each_lane(rank, [&](std::size_t lane) {
          if (first == kNone) first = lane;
          join(first, lane);
        });
    }
  }

  // Joins each lane with the lane of the language module that has the rows of its samples.
  void join_samples() {
    std::map<std::uint32_t, std::size_t> lane_of;
    const WorkTable& table = step_.works;
    const auto each_work = [&](std::size_t branch, auto use) {
      const Range works = table.of_branch(branch);
      for (std::uint32_t w = works.begin; w < works.end; ++w)
        use(table.works[w], first_lane_[branch] + table.works[w].lane);
    };
    each_work(plan_.language, [&](const Work& work, std::size_t lane) {
      for (std::uint32_t i = work.samples.begin; i < work.samples.end; ++i)
        lane_of[table.work_samples[i]] = lane;
    });
    for (std::size_t b = 0; b < plan_.branches.size(); ++b)
      each_work(b, [&](const Work& work, std::size_t lane) {
        for (std::uint32_t i = work.items.begin; i < work.items.end; ++i)
          join(lane_of.at(table.items_of_works[i].sample), lane);
      });
  }

  LaneGroups grouped() const {
    LaneGroups result;
    std::map<std::size_t, std::uint32_t> group_of;  // by root
    const auto group_at = [&](std::size_t lane) {
      const auto [entry, fresh] =
          group_of.try_emplace(root(lane), static_cast<std::uint32_t>(result.groups.size()));
      if (fresh) result.groups.emplace_back().lanes.resize(plan_.branches.size());
      return entry->second;
    };
    for (std::size_t rank = 0; rank < step_.order_of.size(); ++rank) {
      std::uint32_t group = 0;
      if (meet_by_actions())
        group_at(0);
      else
        each_lane(Rank(rank), [&](std::size_t lane) { group = group_at(lane); });
      result.of_rank.push_back(group);
      std::vector<std::uint32_t>& orders = result.groups[group].orders;
      const std::uint32_t order = step_.order_of[rank];
      const auto at = std::lower_bound(orders.begin(), orders.end(), order);
      if (at == orders.end() || *at != order) orders.insert(at, order);
    }
    for (std::size_t b = 0; b < plan_.branches.size(); ++b)
      for (std::uint32_t lane = 0; lane < static_cast<std::uint32_t>(plan_.branches[b].lanes());
           ++lane)
        result.groups[group_at(first_lane_[b] + lane)].lanes[b].push_back(lane);
    return result;
  }

  const Plan& plan_;
  const StepPlan& step_;
  std::vector<std::size_t> first_lane_;  // by branch, among all lanes
  std::vector<std::size_t> root_;        // by lane: another of its group, or itself
};

}  // namespace

bool LaneGroup::has(std::size_t branch, std::uint32_t lane) const {
  return std::binary_search(lanes[branch].begin(), lanes[branch].end(), lane);
}

LaneGroups lane_groups(const Plan& plan, const StepPlan& step) {
  return Grouping(plan, step).run();
}

std::vector<Actions> orders_of(const StepPlan& step, const LaneGroup& group) {
  std::vector<Actions> orders;
  for (const std::uint32_t order : group.orders) orders.push_back(step.orders[order]);
  return orders;
}

void put_orders(const LaneGroups& groups, std::vector<std::vector<Actions>> orders,
                StepPlan& step) {
  std::vector<Actions> all;
  std::vector<std::size_t> first;  // by group, in `all`
  for (std::size_t g = 0; g < orders.size(); ++g) {
    const auto same =
        std::find(orders.begin(), orders.begin() + static_cast<std::ptrdiff_t>(g), orders[g]);
    const auto before = static_cast<std::size_t>(same - orders.begin());
    if (before < g) {
      first.push_back(first[before]);
      continue;
    }
    first.push_back(all.size());
    all.insert(all.end(), orders[g].begin(), orders[g].end());
  }
  for (std::size_t rank = 0; rank < step.order_of.size(); ++rank) {
    const std::uint32_t group = groups.of_rank[rank];
    const std::vector<std::uint32_t>& mine = groups.groups[group].orders;
    const auto at = std::lower_bound(mine.begin(), mine.end(), step.order_of[rank]);
    step.order_of[rank] =
        static_cast<std::uint32_t>(first[group] + static_cast<std::size_t>(at - mine.begin()));
  }
  step.orders = std::move(all);
}

}  // namespace polyphony
