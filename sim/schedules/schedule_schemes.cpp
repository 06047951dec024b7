// The schedules of the page (compared_schedules.h says what each is) and their settings.
#include <algorithm>
#include <numeric>

#include "shared/planner/bubble_filling.h"
#include "shared/schedule/orders.h"
#include "sim/schedules/stage_splits.h"

namespace polyphony::sim {
namespace {

// The settings of a schedule's row on so many ranks: how many virtual stages.
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

// Every module on all ranks; `v` virtual stages of the last one, placed as `row` says.
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
             const auto phase = [&](std::size_t b, TurnKind kind, int rank, Turns& turns) {
               const BranchCosts& branch = made.costs.branches[b];
               if (rank >= branch.stages()) return;
               for (int w = 0; w < branch.works(); ++w)
                 turns.push_back(of_branch(make_turn(kind, rank, w), b));
             };
             for (int p = 0; p < ranks; ++p) {
               Turns turns;
               for (std::size_t b = 0; b < last; ++b) phase(b, TurnKind::forward, p, turns);
               for (const Turn& turn : row.order({ranks, v, of.microbatches, 0}, p))
                 turns.push_back(of_branch(turn, last));
               for (std::size_t b = last; b-- > 0;) phase(b, TurnKind::backward, p, turns);
               made.orders.push_back(turns);
             }
             return made;
           }});
  return scheme;
}

Scheme bubble_filling(const StageTimes& times, const CompareOptions& options) {
  Scheme scheme{"bubble filling", {}};
  for (const ScheduleKind kind : {ScheduleKind::one_f_one_b, ScheduleKind::interleaved}) {
    const Schedule& row = schedule(kind);
    for (const int v : rounds(row, options.ranks, times.microbatches, times.modules.back().pieces))
      scheme.settings.push_back(
          {row.name + (v > 1 ? " " + vpp(v) : ""), [&row, v, &options](const StageTimes& of) {
             Arranged made{colocated(of, options.ranks, row, v), {}};
             limit(made.costs, options);
             const std::size_t last = of.modules.size() - 1;
             std::vector<Turns> first;
             for (int p = 0; p < options.ranks; ++p) {
               first.emplace_back();
               for (const Turn& turn : row.order({options.ranks, v, of.microbatches, 0}, p))
                 first.back().push_back(of_branch(turn, last));
             }
             auto filled = fill_bubbles(made.costs, last, first);
             if (auto* no = std::get_if<Infeasible>(&filled))
               return Arranged{{}, {}, std::move(no->reason)};
             made.orders = std::move(std::get<std::vector<Turns>>(filled));
             return made;
           }});
  }
  return scheme;
}

// Stages of the one chain where the file's rows have them.
Scheme own(const CompareOptions& options) {
  return {kOwn, {{"", [&options](const StageTimes& of) {
                    std::vector<int> rank_of_stage;
                    for (std::size_t p = 0; p < options.own.size(); ++p)
                      for (const Turn& turn : options.own[p]) {
                        if (turn.stage >= rank_of_stage.size())
                          rank_of_stage.resize(turn.stage + std::size_t{1}, 0);
                        rank_of_stage[turn.stage] = static_cast<int>(p);
                      }
                    const int pieces = chained(of).pieces;
                    if (rank_of_stage.size() > std::size_t(pieces))
                      return Arranged{{},
                                      {},
                                      "has turns of " + std::to_string(rank_of_stage.size()) +
                                          " stages, there are " + std::to_string(pieces) +
                                          " pieces"};
                    Arranged made{{options.ranks, of.microbatches, {}, {}}, options.own};
                    made.costs.branches = {split(chained(of), rank_of_stage)};
                    return made;
                  }}}};
}

// The same on stages of each module: a microbatch's parts one after another.
Scheme own_by_module(const CompareOptions& options) {
  return {kOwn, {{"", [&options](const StageTimes& of) {
                    const std::size_t last = of.modules.size() - 1;
                    Arranged made{{options.ranks, of.microbatches, {}, {}}, {}, {}};
                    std::vector<std::vector<int>> ranks_of(of.modules.size());
                    for (std::size_t p = 0; p < options.own.size(); ++p) {
                      Turns& turns = made.orders.emplace_back();
                      for (Turn turn : options.own[p]) {
                        std::vector<int>& ranks = ranks_of[turn.branch];
                        if (turn.stage >= ranks.size()) ranks.resize(turn.stage + std::size_t{1});
                        ranks[turn.stage] = static_cast<int>(p);
                        if (turn.work >= of.microbatches)
                          return Arranged{{},
                                          {},
                                          "has a turn of microbatch " + std::to_string(turn.work) +
                                              ", there are " + std::to_string(of.microbatches)};
                        const auto slots = slots_of(of.modules[turn.branch], {turn.work});
                        for (const int work : slots.front()) {
                          turn.work = work;
                          turns.push_back(turn);
                        }
                      }
                    }
                    for (std::size_t m = 0; m <= last; ++m) {
                      const ModuleTimes& module = of.modules[m];
                      const auto stages = static_cast<int>(ranks_of[m].size());
                      if (stages < 1 || stages > module.pieces)
                        return Arranged{{},
                                        {},
                                        "has turns of " + std::to_string(stages) + " stages of " +
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
    result.push_back(apart_reordered(times, options.ranks));
    result.push_back(entrain_deals(times, options.ranks));
    if (times.modules.size() > 2) result.push_back(beside_each_other(times, options.ranks));
  }
  result.push_back(dip(times, options));
  if (!options.own.empty())
    result.push_back(options.own_by_module ? own_by_module(options) : own(options));
  return result;
}

}  // namespace polyphony::sim
