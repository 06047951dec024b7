#include "sim/answers/predict.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "shared/cost/cost_model.h"
#include "shared/cost/degraded.h"
#include "shared/hardware/devices.h"
#include "shared/layers/expand.h"
#include "shared/plan/lower.h"
#include "shared/program/expand_op.h"
#include "shared/scenario/typical_batch.h"
#include "sim/runner/simulate.h"

namespace polyphony::sim {
namespace {

void apply_pace(const Program& program, const Compiled& compiled, const Cluster& cluster,
                const PaceModel& pace, CostTable& costs) {
  for (std::size_t n = 0; n < compiled.nodes.size(); ++n) {
    const Node& node = compiled.nodes[n];
    if (node.kind != NodeKind::compute ||
        !std::holds_alternative<Compute>(program.ops[node.what].what))
      continue;
    const Seconds virtual_time =
        pace.scale * compute_time(program, OpId(node.what), cluster, pace.profile);
    costs.nodes[n].duration = std::max(costs.nodes[n].duration, virtual_time);
  }
}

void estimate_into(Prediction& result) {
  result.estimate = estimate(result.program, result.compiled, result.costs);
  result.timeline = result.estimate.timeline;
  result.timeline.makespan = result.estimate.step();
  result.simulated = false;
}

// What follows from the Timeline.
void finish(const Scenario& scenario, const HardwareProfile& profile, Prediction& result) {
  result.peak = peak(profile.device, scenario.training.precision);
  result.memory = predict_memory(result.program, result.timeline);
}

std::variant<Prediction, Infeasible> prepare(const Scenario& scenario, const Layout& layout,
                                             const Plan& plan, const Batch& batch,
                                             const HardwareProfile& profile) {
  Prediction result;
  result.program = lower(scenario, layout, plan, batch, Pass::train, profile.stack);
  if (const auto no = check_links(result.program, scenario.cluster)) return *no;
  auto compiled = compile(result.program);
  if (const Fault* fault = std::get_if<Fault>(&compiled))
    POLYPHONY_CHECK(false, "lowering made a Program that cannot run: " << fault->text);
  result.compiled = std::move(std::get<Compiled>(compiled));
  result.costs = price(result.program, result.compiled, scenario.cluster, profile);
  return result;
}

}  // namespace

std::variant<Prediction, Infeasible> predict_folded(const Scenario& scenario, const Layout& layout,
                                                    const HardwareProfile& profile) {
  auto plan = fold(scenario, layout, make_plan(scenario, layout));
  if (const auto* no = std::get_if<Infeasible>(&plan)) return *no;
  auto prepared = prepare(scenario, layout, std::get<Plan>(plan),
                          fold(typical_batch(scenario), layout), profile);
  if (const auto* no = std::get_if<Infeasible>(&prepared)) return *no;
  Prediction& result = std::get<Prediction>(prepared);
  estimate_into(result);
  finish(scenario, profile, result);
  return prepared;
}

std::variant<Prediction, Infeasible> predict(const Scenario& scenario, const Layout& layout,
                                             const Batch& batch, const HardwareProfile& profile,
                                             Predictor predictor,
                                             const std::optional<PaceModel>& pace) {
  auto prepared = prepare(scenario, layout, make_plan(scenario, layout), batch, profile);
  if (const auto* no = std::get_if<Infeasible>(&prepared)) return *no;
  Prediction& result = std::get<Prediction>(prepared);
  if (pace) apply_pace(result.program, result.compiled, scenario.cluster, *pace, result.costs);
  estimate_into(result);
  if (predictor == Predictor::simulate) {
    auto timeline = simulate(result.program, result.compiled, result.costs);
    if (const auto* no = std::get_if<Infeasible>(&timeline)) return *no;
    result.timeline = std::move(std::get<Timeline>(timeline));
    result.simulated = true;
  }
  finish(scenario, profile, result);
  return prepared;
}

Flops model_flops(const Program& program) {
  // Most ops are of few shapes.
  std::map<std::tuple<ModuleId, LayerRange, Phase, WorkSize>, Flops> known;
  Flops total{};
  for (const Op& op : program.ops) {
    const auto* what = std::get_if<Compute>(&op.what);
    if (what == nullptr || what->phase == Phase::recompute) continue;
    const WorkSize& size = program.size_of(what->work, what->module);
    const auto [flops, fresh] = known.try_emplace({what->module, what->layers, what->phase, size});
    if (fresh) {
      ChunkContext context = chunk_context(program, *what);
      context.recompute = Recompute::none;
      flops->second = total_flops(expand(program.model.modules[what->module.value], what->layers,
                                         what->phase, size, context));
    }
    total += flops->second;
  }
  return total;
}

std::string stage_name(const Program& program, Rank rank) {
  std::string text;
  std::set<std::string> seen;
  for (const ParamGroup& group : program.params) {
    const Module& module = program.model.modules[group.module.value];
    if (group.rank != rank || module.kind == ModuleKind::projector) continue;
    const ModuleLayout& grid = program.layout.modules[group.module.value];
    const int stage =
        (static_cast<int>(rank.value) - grid.first_rank) / (grid.tp * grid.cp * grid.dp());
    const std::string part = module.name + " stage " + std::to_string(stage);
    if (seen.insert(part).second) text += (text.empty() ? "" : " + ") + part;
  }
  return text;
}

Figures figures(const Scenario& scenario, const Prediction& prediction) {
  Figures result;
  const Program& program = prediction.program;
  result.step = prediction.step();
  const ModuleId language = language_module(program.model);
  std::int64_t tokens = 0;
  for (std::size_t w = 0; w < program.works.size(); ++w)
    tokens += program.size_of(WorkId(w), language).tokens;
  result.tokens_per_second_per_rank =
      static_cast<double>(tokens) / result.step.count() / program.ranks;
  const double peak_rate = prediction.peak.value;
  if (peak_rate > 0)
    result.model_flops_utilization =
        model_flops(program).value / (peak_rate * program.ranks * result.step.count());
  for (std::size_t r = 0; r < prediction.memory.size(); ++r) {
    if (prediction.memory[r].peak <= result.peak_memory && result.worst_rank.valid()) continue;
    result.peak_memory = prediction.memory[r].peak;
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

Joules energy(const Scenario& scenario, const Prediction& prediction) {
  const Program& program = prediction.program;
  const Watts busy = scenario.cluster.busy_power, idle = scenario.cluster.idle_power;
  Joules total = idle * (prediction.step() * program.ranks);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const auto& what = program.ops[i].what;
    if (!std::holds_alternative<Compute>(what) && !std::holds_alternative<Update>(what)) continue;
    total += (busy - idle) * (prediction.timeline.ops[i].end - prediction.timeline.ops[i].start);
  }
  return busy.value > 0 ? total : Joules(0);
}

std::string describe_layout(const Scenario& scenario, const Layout& layout) {
  const std::size_t last = language_module(scenario.model).value;
  const ModuleLayout& encoder = layout.modules.front();
  std::string text = name(layout.placement);
  const char* between = "  ";
  for (std::size_t m = 0; m < layout.modules.size(); ++m) {
    const Module& module = scenario.model.modules[m];
    const bool one_grid = layout.placement == Placement::homogeneous && m != last;
    if (module.kind == ModuleKind::projector || one_grid) continue;
    text += between + module.name + " " + describe(layout.modules[m]);
    between = " |  ";
  }
  text += std::string("  ") + schedule_name(layout) + " x" + std::to_string(layout.microbatches);
  if (layout.placement == Placement::homogeneous &&
      encoder.recompute != layout.modules[last].recompute)
    text += "  " + scenario.model.modules.front().name + " recompute " + name(encoder.recompute);
  if (layout.encoder_microbatches > 0)
    text += "  encoder x" + std::to_string(layout.encoder_microbatches);
  return text;
}

}  // namespace polyphony::sim
