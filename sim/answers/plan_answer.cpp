#include "sim/answers/plan_answer.h"

#include "shared/layers/parameters.h"
#include "shared/layers/sizes.h"
#include "shared/plan/lower.h"
#include "shared/plan/plan.h"
#include "shared/program/verify.h"
#include "shared/scenario/typical_batch.h"
#include "shared/screen/balanced_plan.h"

namespace polyphony::sim {
namespace {

std::string ranks_text(const ModuleLayout& grid, int stage) {
  const int cell = grid.tp * grid.cp * grid.dp();
  const int first = grid.first_rank + stage % grid.pp * cell;  // virtual stages come round again
  return cell == 1 ? std::to_string(first)
                   : std::to_string(first) + "-" + std::to_string(first + cell - 1);
}

PlannedStage planned_stage(const Model& model, const Branch& branch, std::size_t stage) {
  PlannedStage row;
  row.stage = static_cast<int>(stage);
  row.ranks = ranks_text(branch.grid, row.stage);
  row.grid = describe(branch.grid);
  for (const Chunk& chunk : branch.stages[stage].chunks) {
    const Module& module = model.modules[chunk.module.value];
    row.layers += (row.layers.empty() ? "" : ", ") + module.name + " [" +
                  std::to_string(chunk.layers.begin) + "," + std::to_string(chunk.layers.end) + ")";
    row.parameters_per_rank += local_parameters(module, chunk.layers, {.tensor = branch.grid.tp});
  }
  return row;
}

}  // namespace

PlanAnswer answer_plan(const Scenario& scenario, const HardwareProfile& profile) {
  PlanAnswer answer;
  for (const Module& module : scenario.model.modules)
    answer.modules.push_back(
        {module.name, name(module.kind), name(module.trainable), parameter_count(module)});
  if (!scenario.layout) return answer;
  const Layout& layout = require_layout(scenario);
  const Plan plan = balanced_plan(scenario, layout, profile);
  const Program program = lower(scenario, with_blocks(layout, plan), plan, typical_batch(scenario));
  const std::vector<Fault> faults = verify(program);
  POLYPHONY_CHECK(faults.empty(), name(faults.front().kind) << ": " << faults.front().text);
  answer.layout = describe(scenario.model, layout);
  for (const Branch& branch : plan.branches)
    for (std::size_t s = 0; s < branch.stages.size(); ++s)
      answer.stages.push_back(planned_stage(scenario.model, branch, s));
  answer.program = {program.ranks, program.ops.size(), program.messages.size(), hash(program)};
  if (const auto no = check_runnable(scenario, layout)) answer.simulation_only = no->reason;
  return answer;
}

}  // namespace polyphony::sim
