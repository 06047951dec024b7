// The answer of `polyphony plan`: what a scenario's layout means. Its modules, the pipeline stages
// and their ranks, their cost and memory, why stages are split where they are, and the size of the
// Program of one step, which is verified.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "shared/error.h"
#include "shared/hardware/hardware.h"
#include "shared/scenario/scenario.h"

namespace polyphony::sim {

struct PlannedModule {
  std::string name, kind, trainable;
  std::int64_t parameters = 0;
};
struct PlannedStage {
  int stage = 0;     // within its branch
  std::string name;  // as stage_name() has it: "vision stage 0"
  std::string ranks, grid;
  std::string layers;  // "vision [0,3)": positions in the module's layer stack
  std::string words;   // "vision input, blocks 0-1"
  std::int64_t parameters_per_rank = 0;
  Seconds forward{}, backward{};  // of a mean microbatch (shared/cost/layer_costs.h)
  Bytes memory{};                 // predicted peak of its worst rank, other stages on it included
};

// Another split of a branch into stages.
struct OtherSplit {
  std::vector<int> blocks;    // by stage
  Seconds bottleneck_time{};  // cost of the bottleneck rank
  Bytes memory{};             // of the layout's worst rank, by the closed form of shared/screen/
};
// One branch with several stages. The cost of a rank is the time of its stages' forward and
// backward passes for a mean microbatch, plus the messages that it waits for
// (shared/split/balanced_plan.h).
struct PlannedSplit {
  std::string branch;                 // its modules: "vision + language"
  bool given = false;                 // the layout states the split
  std::vector<int> blocks;            // by stage
  std::string bottleneck;             // the stages of the most expensive rank: "stage 3"
  Seconds bottleneck_time{}, mean{};  // cost of that rank, and the mean over ranks
  struct Boundary {
    // One block moved to the stage before or after the boundary; absent if a stage would be empty.
    std::optional<OtherSplit> earlier, later;
  };
  std::vector<Boundary> boundaries;  // after stage 0, 1, …
  std::optional<OtherSplit> better;  // the split of an aware balance, if it differs from this one
  std::optional<OtherSplit> next;    // the next best split, if this is the aware balance's choice
  bool exact = true;                 // the best of all splits; false: virtual stages, heuristic
};

// Compute time of each microbatch of a module, in seconds, ordered by data-parallel replica:
// forward and backward passes through all stages of the module. Under planner entrain, a deferred
// sample counts in the microbatch that computes it. Under planner dip there is one entry per
// sub-microbatch, in execution order.
struct MicrobatchWork {
  std::string module;
  std::vector<double> unplanned, planned;
};

// The plan of planner entrain for the typical batch.
struct PlannedWork {
  // Spread of the work of microbatches over all replicas: standard deviation / mean, without the
  // planner and with it. `least`: a lower bound over all assignments of whole samples
  // (entrain::least_spread).
  struct Spread {
    double unplanned = 0, planned = 0, least = 0;
  };
  std::string planner;
  int samples = 0, deferred = 0;  // of the batch; of these, deferred to the next microbatch
  Spread encoder, language;
  std::vector<MicrobatchWork> microbatches;  // by branch
  Seconds step{}, unplanned{};               // estimated, with the planner and without
  // Set if encoders have their own ranks. `ranks`: ranks of each branch in one replica.
  // `stable_batch`: number of samples from which on every batch suggests the same division of
  // ranks, `stable_ranks` (shared/planner/stable_batch.h); 0 if none was found.
  std::vector<int> ranks;
  int stable_batch = 0;
  std::vector<int> stable_ranks;
  bool pays() const { return step < unplanned; }
};

// The order found by planner dip for the typical batch.
struct SearchedOrder {
  int works = 0, filled = 0;      // encoder sub-microbatches of all replicas; those with items
  std::array<int, 5> forwards{};  // number of forward actions of all ranks, by Recipe
  Seconds believed{}, bound{};    // makespan by the planner's own costs; lower bound of any order
  Seconds step{}, unplanned{};    // estimated, with the planner and without
  double gap() const { return bound > Seconds(0) ? believed / bound - 1 : 0; }
  bool unplanned_fits = true;                // without the planner, the step fits in memory
  std::vector<MicrobatchWork> microbatches;  // by branch
  bool pays() const { return step < unplanned || !unplanned_fits; }
};

struct PlannedProgram {
  std::uint32_t ranks = 0;
  std::size_t ops = 0, messages = 0;
  std::uint64_t hash = 0;
};

struct PlanAnswer {
  std::vector<PlannedModule> modules;
  // The rest is set if the scenario has a layout.
  std::string layout, balance;
  std::vector<PlannedStage> stages;
  std::vector<PlannedSplit> splits;
  std::optional<PlannedWork> work;     // set for planner entrain
  std::optional<SearchedOrder> order;  // set for planner dip
  int global_batch = 0;
  Bytes device_memory{};  // zero: unknown
  std::optional<PlannedProgram> program;
  std::string simulation_only;  // why the executor cannot run it; empty: it can
};

// Plans the scenario; the profile gives the costs by which stages are split. Throws InputError for
// an illegal layout. Returns Infeasible if the cluster does not have a link that the layout needs.
std::variant<PlanAnswer, Infeasible> answer_plan(const Scenario& scenario,
                                                 const HardwareProfile& profile);

}  // namespace polyphony::sim
