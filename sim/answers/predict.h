// One layout, one batch, predicted: Program, Timeline, memory and the figures people ask for.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "shared/cost/cost.h"
#include "shared/error.h"
#include "shared/hardware/hardware.h"
#include "shared/plan/plan.h"
#include "shared/program/memory.h"
#include "shared/program/program.h"
#include "shared/scenario/scenario.h"

namespace polyphony::sim {

// Paced ranks (DESIGN of `rehearse`): compute ops last `scale` times what `profile` says,
// everything else is this machine's.
struct PaceModel {
  HardwareProfile profile;
  double scale = 1;
};

struct Prediction {
  Program program;
  Compiled compiled;
  CostTable costs;
  Estimate estimate;
  Timeline timeline;  // simulated, or the estimate's when asked for
  std::vector<RankMemory> memory;
  bool simulated = true;
  FlopsPerSecond peak{};  // of one rank's device in the training precision, as the profile knows it
  Seconds step() const { return timeline.makespan; }
};

enum class Predictor : std::uint8_t { estimate, simulate };

// Needs a layout that check_layout() accepts. Infeasible: a link the cluster does not have.
std::variant<Prediction, Infeasible> predict(const Scenario& scenario, const Layout& layout,
                                             const Batch& batch, const HardwareProfile& profile,
                                             Predictor predictor,
                                             const std::optional<PaceModel>& pace = {});

// By one rank per pipeline stage (shared/plan/plan.h: fold), which stands for the rest: the
// estimate and the memory of those ranks, as unfolded. Infeasible: the layout does not fold.
std::variant<Prediction, Infeasible> predict_folded(const Scenario& scenario, const Layout& layout,
                                                    const HardwareProfile& profile);

// The batch a prediction is about when no trace names one: the scenario's typical batch.
// Utilization: PaLM, arXiv 2204.02311, App. B, but for FLOPs counted product by product
// (model_flops). Prices and kilowatt-hours: own count.
struct Figures {
  Seconds step{};
  double tokens_per_second_per_rank = 0;  // language tokens
  double model_flops_utilization =
      0;  // model FLOPs (no recompute, frozen parts without backward) ÷ (peak · ranks · step)
  Bytes peak_memory{};  // of the worst rank
  Rank worst_rank;
  std::string worst_stage;  // "language stage 0"
  Bytes device_memory{};
  double dollars_per_million_tokens = 0;  // 0: the cluster has no price
  double dollars_per_step = 0;
  Joules energy{};          // of a step, all ranks; 0: no power is known
  std::int64_t tokens = 0;  // of a step, of the language module
  double kilowatt_hours() const { return energy.value / 3.6e6; }
  double kilowatt_hours_per_million_tokens() const {
    return tokens > 0 ? kilowatt_hours() / static_cast<double>(tokens) * 1e6 : 0;
  }
  bool fits() const { return device_memory.value == 0 || peak_memory <= device_memory; }
};
Figures figures(const Scenario& scenario, const Prediction& prediction);

// Of one step, of the Program's ranks: a device draws its busy power while it runs compute ops,
// inner collectives included, its idle power the rest of the step. Unfolded Programs only. Not the
// hosts, switches and cooling around it.
Joules energy(const Scenario& scenario, const Prediction& prediction);

// Model FLOPs of one step over all ranks.
Flops model_flops(const Program& program);
// "language stage 2" for the rank, from its parameter groups.
std::string stage_name(const Program& program, Rank rank);
// One line: "non-colocated  vision TP1 PP1 DP2 | language TP1 PP2 DP1  1f1b ×8".
std::string describe_layout(const Scenario& scenario, const Layout& layout);

}  // namespace polyphony::sim
