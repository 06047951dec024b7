// Summary figures of a prediction: step time, throughput, MFU, peak memory, cost and energy.
//   model_flops_utilization   model FLOPs (shared/cost/model_flops.h) / (peak · ranks · step).
//                             Model FLOPs do not depend on the layout (PaLM, arXiv 2204.02311,
//                             App. B, counted per matrix multiplication). The only MFU in this
//                             project.
//   dollars, kilowatt-hours   our own count; power is that of the devices alone
//
// A folded prediction has the same figures: its replicas represent all of them. The exception is
// energy, which is absent, because represented ranks have no ops in the Timeline.
#pragma once

#include <optional>
#include <string>

#include "sim/prediction/predict.h"

namespace polyphony::sim {

struct Figures {
  Seconds step{};
  double tokens_per_second_per_rank = 0;  // language tokens
  double model_flops_utilization = 0;     // fraction; 0: the peak or a module's FLOPs are unknown
  Bytes peak_memory{};                    // tensors of the rank that needs most, `worst_rank`
  Bytes library_memory{};                 // of that rank (shared/graph/library_memory.h)
  Rank worst_rank;
  std::string worst_stage;  // "language stage 0"
  Bytes device_memory{};
  double dollars_per_million_tokens = 0;  // 0: the cluster has no price
  double dollars_per_step = 0;
  std::optional<Joules> energy{};  // of all ranks in one step; absent: folded, or power unknown
  std::int64_t tokens = 0;         // tokens of the language module in one step
  // The next two are 0 if the energy is absent.
  double kilowatt_hours() const { return energy.value_or(Joules(0)).value / 3.6e6; }
  double kilowatt_hours_per_million_tokens() const {
    return tokens > 0 ? kilowatt_hours() / static_cast<double>(tokens) * 1e6 : 0;
  }
  Bytes needed_memory() const { return peak_memory + library_memory; }
  // True also if the device memory is unknown (0).
  bool fits() const { return device_memory.value == 0 || needed_memory() <= device_memory; }
};
Figures figures(const Scenario& scenario, const Prediction& prediction);

// Returns the energy of one step, over all ranks of the Program; nothing if the prediction is
// folded or the power is unknown. A device draws busy power while it runs compute ops (including
// collectives inside them) and idle power for the rest of the step. Hosts, switches and cooling are
// not modeled.
std::optional<Joules> energy(const Scenario& scenario, const Prediction& prediction);

}  // namespace polyphony::sim
