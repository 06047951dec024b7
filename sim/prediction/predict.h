// One layout, one batch, predicted: Program, Timeline, memory. Figures: sim/prediction/figures.h.
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
#include "shared/plan/plan.h"
#include "shared/program/program.h"
#include "shared/scenario/scenario.h"

namespace polyphony::sim {

struct Prediction {
  Program program;
  Compiled compiled;
  CostTable costs;
  Estimate estimate;
  Timeline timeline;  // simulated, or the estimate's when asked for
  std::vector<RankMemory> memory;
  bool simulated = true;
  int lanes = 1;          // that each lane of the Program stands for: more where it is folded
  bool folded = false;    // ranks that others stand for have no ops
  FlopsPerSecond peak{};  // of one rank's device in the training precision, as the profile knows it
  Seconds step() const { return timeline.makespan; }
};

enum class Predictor : std::uint8_t { estimate, simulate };

// Needs a layout that check_layout() accepts. Infeasible: a link the cluster does not have.
std::variant<Prediction, Infeasible> predict(const Scenario& scenario, const Layout& layout,
                                             const Batch& batch, const HardwareProfile& profile,
                                             Predictor predictor,
                                             const std::optional<PaceModel>& pace = {});

// Of a Program that is there: one that was run.
std::variant<Prediction, Infeasible> predict(Program program, const Scenario& scenario,
                                             const HardwareProfile& profile, Predictor predictor,
                                             const std::optional<PaceModel>& pace = {});

// Programs that this process has lowered for predictions: what tests of thrift count.
std::uint64_t programs_lowered();

// By ranks that stand for all that do the same (shared/plan/plan.h: fold, which says how exactly): the
// estimate and the memory of those ranks. Infeasible: the layout does not fold.
std::variant<Prediction, Infeasible> predict_folded(const Scenario& scenario, const Layout& layout,
                                                    const HardwareProfile& profile);
// Of the typical batch and its module_sizes() (shared/cost/layer_costs.h), for who predicts many; of
// lanes whose samples differ an estimate, if asked for.
std::variant<Prediction, Infeasible> predict_folded(const Scenario& scenario, const Layout& layout,
                                                    const HardwareProfile& profile,
                                                    const Batch& typical,
                                                    const std::vector<WorkSize>& sizes,
                                                    Lanes lanes = Lanes::alike);

}  // namespace polyphony::sim
