#include "sim/prediction/figures.h"

#include "shared/cost/model_flops.h"
#include "shared/program/stage_name.h"

namespace polyphony::sim {

Figures figures(const Scenario& scenario, const Prediction& prediction) {
  Figures result;
  const Program& program = prediction.program;
  result.step = prediction.step();
  const ModuleId language = language_module(program.model);
  std::int64_t tokens = 0;
  for (std::size_t w = 0; w < program.works.size(); ++w)
    tokens += program.size_of(WorkId(w), language).tokens;
  tokens *= prediction.lanes;
  result.tokens_per_second_per_rank =
      static_cast<double>(tokens) / result.step.count() / program.ranks;
  const double peak_rate = prediction.peak.value;
  if (peak_rate > 0)
    result.model_flops_utilization =
        prediction.lanes * model_flops(program.model, program.batch, program.precision).value /
        (peak_rate * program.ranks * result.step.count());
  for (std::size_t r = 0; r < prediction.memory.size(); ++r) {
    const RankMemory& memory = prediction.memory[r];
    if (memory.peak == Bytes(0) && result.worst_rank.valid()) continue;  // folded: without ops
    if (memory.needed() <= result.needed_memory() && result.worst_rank.valid()) continue;
    result.peak_memory = memory.peak;
    result.library_memory = memory.libraries;
    result.worst_rank = Rank(r);
  }
  result.worst_stage = stage_name(program, result.worst_rank);
  result.device_memory = scenario.cluster.device.memory;
  result.dollars_per_million_tokens = scenario.cluster.dollars_per_rank_hour * program.ranks /
                                      3600.0 * result.step.count() / static_cast<double>(tokens) *
                                      1e6;
  result.energy = energy(scenario, prediction);
  const double share = scenario.cluster.dollars_per_rank_hour * program.ranks / 3600.0;
  result.dollars_per_step = share * result.step.count();
  result.tokens = tokens;
  return result;
}

std::optional<Joules> energy(const Scenario& scenario, const Prediction& prediction) {
  const Program& program = prediction.program;
  const Watts busy = scenario.cluster.busy_power, idle = scenario.cluster.idle_power;
  if (prediction.folded || busy.value <= 0) return {};
  Joules total = idle * (prediction.step() * program.ranks);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const auto& what = program.ops[i].what;
    if (!std::holds_alternative<Compute>(what) && !std::holds_alternative<Update>(what)) continue;
    total += (busy - idle) * (prediction.timeline.ops[i].end - prediction.timeline.ops[i].start);
  }
  return total;
}

}  // namespace polyphony::sim
