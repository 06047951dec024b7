// What orders of a step's actions come to, side by side, over nothing but times: no model, no cluster.
//   Of a module's pieces, the finest that it is cut into, each schedule makes stages of its own:
//     named schedules       all modules in one chain (shared/schedule/schedule.h)
//     encoders first        on the last module's ranks, along its pipeline; all forwards before it, all
//                           backwards after it
//     bubble filling        the same stages; encoders run where the last module would rest (as
//                           Optimus does, arXiv 2408.03505)
//     apart, reordered      encoders on ranks of their own, microbatches in the best of three orders: as
//                           they come, by work, least work at both ends (as DistTrain does, arXiv
//                           2408.04275)
//     modalities beside each other   each encoder on ranks of its own, all at once (as Cornstarch does,
//                           arXiv 2503.11367)
//     entrain               encoders on ranks of their own; parts of microbatches dealt to microbatches
//                           anew, some encoded one early (shared/planner/entrain.h)
//     dip                   every rank has stages of every module; shared/planner/order_search.h, backwards
//                           whole or in two parts
//     own                   actions of a file, on stages of the one chain, or of each module
//     searched              the stages of each of the rows above, orders searched from theirs: never slower
//   Each at its best setting: the quickest that fits, or, where none does, the one that keeps least.
//   What others do is ours in their manner: none of their code is run.
// The last module is fed by all before it. Works of a module are microbatches or parts of them; in the
// one chain parts are summed up.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/planner/order_search.h"
#include "shared/planner/timetable.h"

namespace polyphony::sim {

struct ModuleTimes {
  std::string name;
  int pieces = 0;
  std::vector<int> microbatch_of;  // by work, ascending
  std::vector<StageCost> costs;    // [piece][work]
  const StageCost& cost(int piece, int work) const {
    return costs[static_cast<std::size_t>(piece) * microbatch_of.size() +
                 static_cast<std::size_t>(work)];
  }
};
struct StageTimes {
  int microbatches = 0;
  std::vector<ModuleTimes> modules;
};

inline constexpr const char* kOwn = "own";

struct ComparedSchedule {
  std::string name, setting;
  std::string refusal;  // not empty: there is no more
  StepCosts costs;
  Timetable table;
  Seconds bound{};  // of any order of these stages on their ranks
  bool fits = true;
  std::vector<Seconds> drawn{};  // makespans over drawn batches, ascending
};
struct ScheduleComparison {
  Seconds bound{};  // of any stages: all work evenly over the ranks, or the longest microbatch
  std::vector<ComparedSchedule> rows;  // quickest first, refused ones last
};
struct CompareOptions {
  int ranks = 1;
  std::optional<Bytes> memory{};  // of a rank, for what forwards keep
  std::vector<Actions> own{};     // empty: none
  bool own_by_module =
      false;           // they are on stages of each module (module_actions.h), not of the one chain
  std::string only{};  // one schedule's name; empty: all
  int draws = 0;       // batches of as many microbatches, drawn from those given
  int placements = 400;  // of dip's search, each setting
};
std::vector<std::string> scheme_names(const StageTimes& times, const CompareOptions& options);
ScheduleComparison compare_schedules(const StageTimes& times, const CompareOptions& options);

// Shares of the makespan that a rank does not compute.
std::vector<double> bubbles(const Timetable& table);

std::string comparison_json(const ScheduleComparison& comparison);
std::string schedule_times_schema();  // of `polyphony schedules --times`

}  // namespace polyphony::sim
