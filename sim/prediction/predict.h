// Predicts one training step of a layout on a batch: lowers it to a Program, computes the cost of
// every op, estimates or simulates the Timeline, and derives the memory of every rank.
// sim/prediction/figures.h summarizes a Prediction in a few numbers.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "shared/cost/cost.h"
#include "shared/error.h"
#include "shared/graph/memory.h"
#include "shared/hardware/hardware.h"
#include "shared/hardware/pace.h"
#include "shared/lower/fold.h"
#include "shared/plan/plan.h"
#include "shared/program/program.h"
#include "shared/scenario/scenario.h"
#include "shared/split/planned_layout.h"

namespace polyphony::sim {

struct Prediction {
  Program program;
  Compiled compiled;
  CostTable costs;
  Estimate estimate;
  Timeline timeline;               // of the simulation, or of the estimate if not simulated
  std::vector<RankMemory> memory;  // by rank
  bool simulated = true;
  int lanes = 1;          // replicas that each replica of the Program represents; above 1 if folded
  bool folded = false;    // only representative ranks have ops
  FlopsPerSecond peak{};  // of one device in the training precision, from the profile
  Seconds step() const { return timeline.makespan; }
};

// estimate: longest path without contention for links. simulate: SimGrid, with contention.
enum class Predictor : std::uint8_t { estimate, simulate };

// Predicts a step of the planned layout on `batch`. Returns Infeasible if the cluster does not have
// a link that the layout needs. `pace`: of a run with emulated compute (shared/hardware/pace.h);
// absent: compute ops take their own durations. Throws InputError if the layout's own actions
// cannot run; with Predictor::simulate also as helper_program() and run_helper() do
// (sim/runner/helper.h).
std::variant<Prediction, Infeasible> predict(const PlannedLayout& planned, const Batch& batch,
                                             Predictor predictor,
                                             const std::optional<PaceModel>& pace = {});
// Plans the layout first. It must be accepted by check_layout().
std::variant<Prediction, Infeasible> predict(const Scenario& scenario, const Layout& layout,
                                             const Batch& batch, const HardwareProfile& profile,
                                             Predictor predictor,
                                             const std::optional<PaceModel>& pace = {});

// Predicts an already lowered Program, for example one that was read from a run folder.
std::variant<Prediction, Infeasible> predict(Program program, const Scenario& scenario,
                                             const HardwareProfile& profile, Predictor predictor,
                                             const std::optional<PaceModel>& pace = {});

// Returns the number of Programs that this process has lowered for predictions. For tests that
// check that results are reused.
std::uint64_t programs_lowered();

// Estimates a step of the typical batch from representative ranks alone: of ranks that do the same,
// only one has ops (fold() in shared/lower/fold.h). Returns the estimate and the memory of those
// ranks, or Infeasible if the layout does not fold. `lanes` selects whether replicas with different
// samples may be folded, which is less accurate.
std::variant<Prediction, Infeasible> predict_folded(const PlannedLayout& planned,
                                                    Lanes lanes = Lanes::alike);
// Plans the layout first. It must be accepted by check_layout().
std::variant<Prediction, Infeasible> predict_folded(const Scenario& scenario, const Layout& layout,
                                                    const HardwareProfile& profile);

}  // namespace polyphony::sim
