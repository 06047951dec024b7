// The schedules (described in compared_schedules.h) and their settings.
#include <algorithm>
#include <numeric>

#include "shared/planner/bubble_filling.h"
#include "shared/schedule/orders.h"
#include "sim/schedules/stage_splits.h"

namespace polyphony::sim {
namespace {

// Returns the numbers of virtual stages per rank with which a schedule can run.
std::vector<int> rounds(const Schedule& row, int ranks, int microbatches, int pieces) {
  std::vector<int> result;
  for (int v = 1; v <= kMostRounds && v * ranks <= pieces; ++v)
    if (row.refusal({ranks, v, microbatches, 0}).empty()) result.push_back(v);
  return result;
}
Scheme named(const Schedule& row, const StageTimes& times, int ranks) {
  Scheme scheme{row.name, {}};
  for (const int v : rounds(row, ranks, times.microbatches, chained(times).pieces))
    scheme.settings.push_back({vpp(v), [&row, v, ranks](const StageTimes& of) {
                                 const Pipeline pipeline{ranks, v, of.microbatches, 0};
                                 Arranged made{{ranks, of.microbatches, {}, {}}, {}, {}};
                                 made.costs.branches = {split(chained(of), placed(row, pipeline))};
                                 for (int p = 0; p < ranks; ++p)
                                   made.orders.push_back(row.order(pipeline, p));
                                 return made;
                               }});
  return scheme;
}

// Every module on all ranks; the last one with `v` virtual stages per rank, placed by `row`.
StepCosts colocated(const StageTimes& times, int ranks, const Schedule& row, int v) {
  StepCosts costs{ranks, times.microbatches, {}, {}};
  for (std::size_t i = 0; i < times.modules.size(); ++i) {
    const ModuleTimes& module = times.modules[i];
    const bool last = i + 1 == times.modules.size();
    costs.branches.push_back(split(module, last ? placed(row, {ranks, v, times.microbatches, 0})
                                                : rounds_of(std::min(ranks, module.pieces), 1)));
    if (!last) costs.branches.back().feeds = times.modules.size() - 1;
  }
  return costs;
}

Scheme encoders_first(const StageTimes& times, int ranks) {
  Scheme scheme{"encoders first", {}};
  for (const Schedule& row : kSchedules)
    for (const int v : rounds(row, ranks, times.microbatches, times.modules.back().pieces))
      scheme.settings.push_back(
          {row.name + (v > 1 ? " " + vpp(v) : ""), [&row, v, ranks](const StageTimes& of) {
             Arranged made{colocated(of, ranks, row, v), {}};
             const std::size_t last = of.modules.size() - 1;
             const auto phase = [&](std::size_t b, ActionKind kind, int rank, Actions& actions) {
               const BranchCosts& branch = made.costs.branches[b];
               if (rank >= branch.stages()) return;
               for (int w = 0; w < branch.works(); ++w)
                 actions.push_back(of_branch(make_action(kind, rank, w), b));
             };
             for (int p = 0; p < ranks; ++p) {
               Actions actions;
               for (std::size_t b = 0; b < last; ++b) phase(b, ActionKind::forward, p, actions);
               for (const Action& action : row.order({ranks, v, of.microbatches, 0}, p))
                 actions.push_back(of_branch(action, last));
               for (std::size_t b = last; b-- > 0;) phase(b, ActionKind::backward, p, actions);
               made.orders.push_back(actions);
             }
             return made;
           }});
  return scheme;
}

Scheme bubble_filling(const StageTimes& times, const CompareOptions& options) {
  Scheme scheme{"bubble filling", {}};
  const int pieces = times.modules.back().pieces;
  for (int v = 1; v <= kMostRounds && v * options.ranks <= pieces; ++v) {
    const Schedule& row = schedule(default_schedule(v));
    if (row.refusal({options.ranks, v, times.microbatches, 0}).empty())
      scheme.settings.push_back(
          {row.name + (v > 1 ? " " + vpp(v) : ""), [&row, v, &options](const StageTimes& of) {
             Arranged made{colocated(of, options.ranks, row, v), {}};
             limit(made.costs, options);
             const std::size_t last = of.modules.size() - 1;
             std::vector<Actions> first;
             for (int p = 0; p < options.ranks; ++p) {
               first.emplace_back();
               for (const Action& action : row.order({options.ranks, v, of.microbatches, 0}, p))
                 first.back().push_back(of_branch(action, last));
             }
             auto filled = fill_bubbles(made.costs, last, first);
             if (auto* no = std::get_if<Infeasible>(&filled))
               return Arranged{{}, {}, std::move(no->reason)};
             made.orders = std::move(std::get<std::vector<Actions>>(filled));
             return made;
           }});
  }
  return scheme;
}

// Actions of a file on stages of the one chain, which are placed by the file's rows.
Scheme own(const CompareOptions& options) {
  return {kOwn, {{"", [&options](const StageTimes& of) {
                    std::vector<int> rank_of_stage;
                    for (std::size_t p = 0; p < options.own.size(); ++p)
                      for (const Action& action : options.own[p]) {
                        if (action.stage >= rank_of_stage.size())
                          rank_of_stage.resize(action.stage + std::size_t{1}, 0);
                        rank_of_stage[action.stage] = static_cast<int>(p);
                      }
                    const int pieces = chained(of).pieces;
                    if (rank_of_stage.size() > std::size_t(pieces))
                      return Arranged{{},
                                      {},
                                      "has actions of " + std::to_string(rank_of_stage.size()) +
                                          " stages, but there are only " + std::to_string(pieces) +
                                          " pieces"};
                    Arranged made{{options.ranks, of.microbatches, {}, {}}, options.own};
                    made.costs.branches = {split(chained(of), rank_of_stage)};
                    return made;
                  }}}};
}

// As above, on stages of each module. The parts of a microbatch run one after another.
Scheme own_by_module(const CompareOptions& options) {
  return {kOwn, {{"", [&options](const StageTimes& of) {
                    const std::size_t last = of.modules.size() - 1;
                    Arranged made{{options.ranks, of.microbatches, {}, {}}, {}, {}};
                    std::vector<std::vector<int>> ranks_of(of.modules.size());
                    for (std::size_t p = 0; p < options.own.size(); ++p) {
                      Actions& actions = made.orders.emplace_back();
                      for (Action action : options.own[p]) {
                        std::vector<int>& ranks = ranks_of[action.branch];
                        if (action.stage >= ranks.size())
                          ranks.resize(action.stage + std::size_t{1});
                        ranks[action.stage] = static_cast<int>(p);
                        if (action.work >= of.microbatches)
                          return Arranged{{},
                                          {},
                                          "has an action of microbatch " +
                                              std::to_string(action.work) +
                                              ", but there are only " +
                                              std::to_string(of.microbatches) + " microbatches"};
                        const auto slots = slots_of(of.modules[action.branch], {action.work});
                        for (const int work : slots.front()) {
                          action.work = work;
                          actions.push_back(action);
                        }
                      }
                    }
                    for (std::size_t m = 0; m <= last; ++m) {
                      const ModuleTimes& module = of.modules[m];
                      const auto stages = static_cast<int>(ranks_of[m].size());
                      if (stages < 1 || stages > module.pieces)
                        return Arranged{{},
                                        {},
                                        "has actions of " + std::to_string(stages) + " stages of " +
                                            module.name + ", which has " +
                                            std::to_string(module.pieces) + " pieces"};
                      made.costs.branches.push_back(split(module, ranks_of[m]));
                      if (m < last) made.costs.branches.back().feeds = last;
                    }
                    return made;
                  }}}};
}

}  // namespace

std::vector<Scheme> schemes(const StageTimes& times, const CompareOptions& options) {
  std::vector<Scheme> result;
  for (const Schedule& row : kSchedules) result.push_back(named(row, times, options.ranks));
  if (times.modules.size() > 1) {
    result.push_back(encoders_first(times, options.ranks));
    result.push_back(bubble_filling(times, options));
    result.push_back(non_colocated_reordered(times, options.ranks));
    result.push_back(entrain_scheme(times, options.ranks));
    if (times.modules.size() > 2) result.push_back(modality_parallel(times, options.ranks));
  }
  result.push_back(dip(times, options));
  if (!options.own.empty())
    result.push_back(options.own_by_module ? own_by_module(options) : own(options));
  return result;
}

}  // namespace polyphony::sim
