// Compares schedules (orders of a step's actions) given only stage times: no model, no cluster.
//   A module is given in pieces, the finest units it can be cut into. Each schedule makes its own
//   stages of them:
//     named schedules       all modules in one chain (shared/schedule/schedule.h)
//     encoders first        on the last module's ranks, along its pipeline: all encoder forwards
//                           before it, all encoder backwards after it
//     bubble filling        the same stages; encoders run in the bubbles of the last module (as
//                           in Optimus, arXiv 2408.03505)
//     non-colocated, reordered  encoders on ranks of their own; microbatches in the best of three
//                           orders: as given, by amount of work, least work at both ends (as in
//                           DistTrain, arXiv 2408.04275)
//     modalities in parallel   each encoder on ranks of its own, all in parallel (as in
//                           Cornstarch, arXiv 2503.11367)
//     entrain               encoders on ranks of their own; parts of microbatches are reassigned to
//                           microbatches, some are encoded one microbatch early
//                           (shared/planner/entrain.h)
//     dip                   every rank has stages of every module (shared/planner/order_search.h),
//                           with backwards whole or split in two
//     own                   actions read from a file, on stages of one chain or of each module
//     searched              the stages of each schedule above, with orders searched from theirs:
//                           never slower
//
//   Each schedule is shown at its best setting: the fastest that fits in memory or, if none does,
//   the one with the lowest peak. Schedules of other systems are our reimplementations; none of
//   their code is run.
//
// The last module is fed by all others. A module processes microbatches or parts of them ("works"
// in the code); in the one chain, parts are summed up.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shared/planner/order_search.h"
#include "shared/planner/timetable.h"

namespace polyphony::sim {

// The times of one module.
struct ModuleTimes {
  std::string name;
  int pieces = 0;
  std::vector<int> microbatch_of;  // by work: the microbatch it belongs to, ascending
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

// One schedule at its best setting.
struct ComparedSchedule {
  std::string name, setting;
  std::string refusal;  // why no setting can run; if not empty, the rest is unset
  StepCosts costs;
  Timetable table;
  Seconds bound{};  // lower bound for any order of these stages on their ranks
  bool fits = true;
  std::vector<Seconds> drawn{};  // makespans over randomly drawn batches, ascending
};
struct ScheduleComparison {
  Seconds bound{};  // lower bound for any stages: total work ÷ ranks, or the longest microbatch
  std::vector<ComparedSchedule> rows;  // those that fit, fastest first; others; refused ones last
};
struct CompareOptions {
  int ranks = 1;
  std::optional<Bytes> memory{};  // of a rank, for saved activations
  std::vector<Actions> own{};     // by rank; empty: none
  bool own_by_module =
      false;           // `own` uses stages of each module (module_actions.h), not of the one chain
  std::string only{};  // compare only the schedule of this name; empty: all
  int draws = 0;       // number of batches drawn at random from the given microbatches
  int placements = 400;  // tried by the search of dip, per setting
};
std::vector<std::string> scheme_names(const StageTimes& times, const CompareOptions& options);
ScheduleComparison compare_schedules(const StageTimes& times, const CompareOptions& options);

// Returns the idle share of the makespan of each rank.
std::vector<double> bubbles(const Timetable& table);

}  // namespace polyphony::sim
