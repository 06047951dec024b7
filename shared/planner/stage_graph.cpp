#include "shared/planner/stage_graph.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace polyphony {

namespace {

bool learns_weights(const BranchCosts& branch, int stage) {
  for (int w = 0; w < branch.works(); ++w)
    if (branch.cost(stage, w).weight > Seconds(0)) return true;
  return false;
}

}  // namespace

std::vector<int> microbatches_in_order(const StepCosts& costs) {
  std::vector<int> order(static_cast<std::size_t>(costs.microbatches));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

StageGraph::StageGraph(const StepCosts& costs, const std::vector<int>& order, bool in_parts)
    : ranks(costs.ranks),
      microbatches(costs.microbatches),
      receive_slots(costs.receive_slots),
      apart(in_parts) {
  const auto ranks_ = static_cast<std::size_t>(ranks), m = order.size();
  on_rank.resize(ranks_);
  full.assign(ranks_, std::vector<std::int64_t>(m, 0));
  actions_of = keeps_of = std::vector<std::vector<int>>(ranks_, std::vector<int>(m, 0));
  limited = !costs.capacity.empty();
  capacity.assign(ranks_, std::numeric_limits<std::int64_t>::max());
  for (std::size_t r = 0; r < costs.capacity.size(); ++r) capacity[r] = costs.capacity[r].value;
  std::vector<int> first_stage;
  for (std::size_t b = 0; b < costs.branches.size(); ++b) {
    const BranchCosts& branch = costs.branches[b];
    first_stage.push_back(static_cast<int>(stages.size()));
    first_place.emplace_back();
    work_at.emplace_back();
    for (const int k : order) {
      first_place[b].push_back(static_cast<int>(work_at[b].size()));
      const auto [begin, end] =
          std::equal_range(branch.microbatch_of.begin(), branch.microbatch_of.end(), k);
      for (auto it = begin; it != end; ++it)
        work_at[b].push_back(static_cast<int>(it - branch.microbatch_of.begin()));
    }
    first_place[b].push_back(static_cast<int>(work_at[b].size()));
    for (int s = 0; s < branch.stages(); ++s) {
      Stage stage{branch.rank_of_stage[static_cast<std::size_t>(s)],
                  b,
                  kept.size(),
                  s,
                  branch.works(),
                  {true, branch.learns, apart && branch.learns && learns_weights(branch, s)}};
      if (stage.runs[kWeight]) stage.gives = kWeight;
      const int index = static_cast<int>(stages.size());
      if (s > 0) {
        stage.from.push_back(index - 1);
        stages.back().to = index;
      }
      on_rank[static_cast<std::size_t>(stage.rank)].push_back(index);
      stages.push_back(stage);
      for (std::size_t k = 0; k < m; ++k)
        for (int p = begin(b, static_cast<int>(k)); p < end(b, static_cast<int>(k)); ++p) {
          const StageCost& cost = branch.cost(s, work_at[b][static_cast<std::size_t>(p)]);
          seconds[kForward].push_back(cost.forward.count());
          seconds[kBackward].push_back(
              (stage.runs[kWeight] ? cost.input : cost.input + cost.weight).count());
          seconds[kWeight].push_back(stage.runs[kWeight] ? cost.weight.count() : 0);
          message.push_back(cost.message.count());
          kept.push_back(branch.learns ? cost.kept.value : 0);
          microbatch.push_back(static_cast<int>(k));
          full[static_cast<std::size_t>(stage.rank)][k] += kept.back();
          keeps_of[static_cast<std::size_t>(stage.rank)][k] += kept.back() > 0 ? 1 : 0;
          const int runs = 1 + (branch.learns ? 1 : 0) + (stage.runs[kWeight] ? 1 : 0);
          actions_of[static_cast<std::size_t>(stage.rank)][k] += runs;
          actions += static_cast<std::size_t>(runs);
        }
    }
  }
  for (std::size_t b = 0; b < costs.branches.size(); ++b) {
    if (!costs.branches[b].feeds) continue;
    const int last = first_stage[b] + costs.branches[b].stages() - 1,
              fed = first_stage[*costs.branches[b].feeds];
    stages[static_cast<std::size_t>(last)].to = fed;
    stages[static_cast<std::size_t>(fed)].from.push_back(last);
  }
}

StageGraph StageGraph::mirrored() const {
  StageGraph mirror = *this;
  std::swap(mirror.seconds[kForward], mirror.seconds[kBackward]);
  const auto reverse_works = [&](auto& values) {
    for (const Stage& stage : stages) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(stage.first);
      std::reverse(begin, begin + stage.works);
    }
  };
  for (auto& values : mirror.seconds) reverse_works(values);
  reverse_works(mirror.message);
  reverse_works(mirror.kept);
  reverse_works(mirror.microbatch);
  for (int& k : mirror.microbatch) k = microbatches - 1 - k;
  for (Stage& stage : mirror.stages) {
    std::swap(stage.runs[kForward], stage.runs[kBackward]);
    // In the mirror the forward still takes the memory, unless a weight part does.
    std::swap(stage.takes, stage.gives);
    for (int* of : {&stage.takes, &stage.gives})
      if (*of != kWeight) *of = 1 - *of;
  }
  for (std::size_t b = 0; b < work_at.size(); ++b) {
    const int works = static_cast<int>(work_at[b].size());
    std::reverse(mirror.work_at[b].begin(), mirror.work_at[b].end());
    std::reverse(mirror.first_place[b].begin(), mirror.first_place[b].end());
    for (int& place : mirror.first_place[b]) place = works - place;
  }
  for (auto& of_rank : mirror.full) std::reverse(of_rank.begin(), of_rank.end());
  for (auto* counts : {&mirror.actions_of, &mirror.keeps_of})
    for (auto& of_rank : *counts) std::reverse(of_rank.begin(), of_rank.end());
  return mirror;
}

Action StageGraph::action(int direction, int stage, int place) const {
  const Stage& of = stages[static_cast<std::size_t>(stage)];
  const ActionKind kind = direction == kForward  ? ActionKind::forward
                          : direction == kWeight ? ActionKind::backward_weight
                          : of.runs[kWeight]     ? ActionKind::backward_input
                                                 : ActionKind::backward;
  Action action = make_action(kind, of.stage, work_at[of.branch][static_cast<std::size_t>(place)]);
  action.branch = static_cast<std::uint16_t>(of.branch);
  return action;
}

}  // namespace polyphony
