// What a scenario's layout means: modules, stages on ranks, what they cost and hold, why the split is
// where it is, the Program of one step, verified.
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
  int stage = 0;  // of its branch
  std::string ranks, grid, layers;
  std::int64_t parameters_per_rank = 0;
  Seconds forward{}, backward{};  // of a mean work item (shared/cost/layer_costs.h)
  Bytes memory{};                 // predicted, of its worst rank with all that this rank holds
};

// Another split of a branch into stages.
struct OtherSplit {
  std::vector<int> blocks;  // by stage
  Seconds dearest{};        // of its ranks
  Bytes memory{};           // of the layout's worst rank, as shared/screen/ counts it
};
// One branch of several stages. A rank's cost: its stages' forwards and backwards of a mean work item, and
// messages that it waits for (shared/split/balanced_plan.h).
struct PlannedSplit {
  std::string branch;       // its modules: "vision + language"
  bool given = false;       // the layout says it
  std::vector<int> blocks;  // by stage
  std::string bottleneck;   // the dearest rank's stages: "stage 3"
  Seconds dearest{}, mean{};
  struct Boundary {
    std::optional<OtherSplit> earlier, later;  // one block given to the stage before, after; none:
                                               // nothing would be left
  };
  std::vector<Boundary> boundaries;  // after stage 0, 1, …
  std::optional<OtherSplit> better;  // what an aware balance would choose, where that is another
  std::optional<OtherSplit> next;    // the next best, where this is what it chooses
  bool exact = true;                 // of all splits; virtual stages: of those found
};

// What each microbatch of a module computes, lane by lane: seconds, forward and backward, of its whole
// pipeline. Planned by entrain: what waits for the next microbatch counts where it is computed. By dip: its
// sub-microbatches, in the order in which they run.
struct MicrobatchWork {
  std::string module;
  std::vector<double> unplanned, planned;
};

// What the layout's planner makes of the typical batch.
struct PlannedWork {
  // Of what microbatches hold, all lanes': standard deviation over mean; `least`: no dealing of whole samples gets
  // below (entrain::least_spread).
  struct Spread {
    double unplanned = 0, planned = 0, least = 0;
  };
  std::string planner;
  int samples = 0, deferred = 0;
  Spread encoder, language;
  std::vector<MicrobatchWork> microbatches;  // by branch
  Seconds step{}, unplanned{};               // estimates, with the planner and without
  // Where encoders have ranks of their own: of a replica's ranks how many each branch has; samples from
  // which on that is split alike for every batch (shared/planner/stable_batch.h), and how. 0: none found.
  std::vector<int> ranks;
  int stable_batch = 0;
  std::vector<int> stable_ranks;
  bool pays() const { return step < unplanned; }
};

// What planner dip makes of the typical batch.
struct SearchedOrder {
  int works = 0, filled = 0;      // sub-microbatches of encoders, all lanes'; that hold items
  std::array<int, 5> forwards{};  // of all ranks' orders, by Recipe
  Seconds believed{}, bound{};    // of its actions; no order of them takes less
  Seconds step{}, unplanned{};    // estimates, with the planner and without
  double gap() const { return bound > Seconds(0) ? believed / bound - 1 : 0; }
  bool unplanned_fits = true;                // in the devices' memory
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
  // Of the layout, where there is one.
  std::string layout, balance;
  std::vector<PlannedStage> stages;
  std::vector<PlannedSplit> splits;
  std::optional<PlannedWork> work;     // where it has planner entrain
  std::optional<SearchedOrder> order;  // where it has planner dip
  int global_batch = 0;
  Bytes device_memory{};  // zero: not known
  std::optional<PlannedProgram> program;
  std::string simulation_only;  // why the executor cannot run it; empty: it can
};

// The profile prices and splits. Errors: InputError for an illegal layout; Infeasible: a link that
// the cluster does not have.
std::variant<PlanAnswer, Infeasible> answer_plan(const Scenario& scenario,
                                                 const HardwareProfile& profile);

}  // namespace polyphony::sim
