// The figures that people ask of a prediction.
//   model_flops_utilization   shared/cost/model_flops.h over (peak · ranks · step): what the model
//                             asks of the batch, whatever the layout (PaLM, arXiv 2204.02311, App.
//                             B, counted product by product). The one MFU of this project.
//   dollars, kilowatt-hours   own count; power is the devices' alone
// Of a folded prediction the same, its lanes standing for all; but for energy, which is of the
// ranks that have ops.
#pragma once

#include <string>

#include "sim/prediction/predict.h"

namespace polyphony::sim {

struct Figures {
  Seconds step{};
  double tokens_per_second_per_rank = 0;  // language tokens
  double model_flops_utilization = 0;     // 0: no such peak, or a module of measured times alone
  Bytes peak_memory{};                    // of the worst rank
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

}  // namespace polyphony::sim
