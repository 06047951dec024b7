#include "sim/plan_answers/plan_answer.h"

#include <algorithm>
#include <set>

#include "shared/check/check.h"
#include "shared/chunk/parameters.h"
#include "shared/chunk/sizes.h"
#include "shared/cost/layer_costs.h"
#include "shared/layers/layer_table.h"
#include "shared/scenario/typical_batch.h"
#include "shared/split/balanced_plan.h"
#include "shared/step/step_record.h"
#include "shared/verify/verify.h"
#include "sim/plan_answers/plan_splits.h"
#include "sim/plan_answers/planned_work.h"
#include "sim/plan_answers/searched_answer.h"
#include "sim/prediction/predict.h"

namespace polyphony::sim {
namespace {

std::string rank_range(int first, int count) {
  const std::string text = std::to_string(first);
  return count == 1 ? text : text + "-" + std::to_string(first + count - 1);
}

// "vision input, blocks 0-1", "language blocks 10-11, output head"; of a projector its name alone.
std::string layer_words(const Module& module, LayerRange range) {
  if (module.kind == ModuleKind::projector) return module.name;
  const std::vector<LayerKind> stack = layers(module);
  int before = 0, first = -1, last = -1;  // blocks
  std::string input, tail;
  for (int layer = 0; layer < range.end; ++layer) {
    const LayerKind kind = stack[static_cast<std::size_t>(layer)];
    const int block = is_block(kind) ? before++ : -1;
    if (layer < range.begin) continue;
    if (block >= 0) {
      if (first < 0) first = block;
      last = block;
    } else if (layer_row(kind).place == LayerPlace::input) {
      input = kind == LayerKind::token_embedding ? "embedding" : "input";
    } else {
      tail = kind == LayerKind::language_head ? "output head" : "output";
    }
  }
  std::string text;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  };
  add(input);
  if (first >= 0)
    add(first == last ? "block " + std::to_string(first)
                      : "blocks " + std::to_string(first) + "-" + std::to_string(last));
  add(tail);
  return module.name + " " + text;
}

// Returns the chunks, those that follow each other in a module as one: sharded layers are chunks of
// their own.
std::vector<Chunk> joined(const std::vector<Chunk>& chunks) {
  std::vector<Chunk> all;
  for (const Chunk& chunk : chunks)
    if (!all.empty() && all.back().module == chunk.module &&
        all.back().layers.end == chunk.layers.begin)
      all.back().layers.end = chunk.layers.end;
    else
      all.push_back(chunk);
  return all;
}

PlannedStage planned_stage(const Scenario& scenario, const LayerCosts& costs, const Branch& branch,
                           std::size_t stage) {
  PlannedStage row;
  row.stage = static_cast<int>(stage);
  const int first = branch.grid.first_rank + branch.rank_of_stage[stage] * branch.stage_ranks();
  row.ranks = rank_range(first, branch.stage_ranks());
  row.grid = describe(branch.grid);
  std::set<ModuleId> named;
  for (const Chunk& chunk : joined(branch.stages[stage].chunks)) {
    const Module& module = scenario.model.modules[chunk.module.value];
    row.layers += (row.layers.empty() ? "" : ", ") + module.name + " [" +
                  std::to_string(chunk.layers.begin) + "," + std::to_string(chunk.layers.end) + ")";
    row.words += (row.words.empty() ? "" : "; ") + layer_words(module, chunk.layers);
    if (module.kind != ModuleKind::projector && named.insert(chunk.module).second)
      row.name += (row.name.empty() ? "" : " + ") + module.name + " stage " + std::to_string(stage);
    row.parameters_per_rank += local_parameters(module, chunk.layers, {.tensor = branch.grid.tp});
    for (int layer = chunk.layers.begin; layer < chunk.layers.end; ++layer) {
      const LayerCost& cost = costs[chunk.module.value][static_cast<std::size_t>(layer)];
      row.forward += cost.forward;
      row.backward += cost.backward;
    }
  }
  if (row.name.empty()) row.name = "stage " + std::to_string(stage);  // projectors alone
  return row;
}

}  // namespace

std::variant<PlanAnswer, Infeasible> answer_plan(const Scenario& scenario,
                                                 const HardwareProfile& profile) {
  PlanAnswer answer;
  for (const Module& module : scenario.model.modules)
    answer.modules.push_back(
        {module.name, name(module.kind), name(module.trainable), parameter_count(module)});
  if (!scenario.layout) return answer;
  const Layout& layout = require_layout(scenario);
  const PlannedLayout planned = plan_layout(borrow_inputs(scenario, profile), layout);
  const Plan& plan = planned.plan;
  const Batch& batch = planned.inputs->typical();
  auto outcome = predict(planned, batch, Predictor::estimate);
  if (const auto* no = std::get_if<Infeasible>(&outcome)) return *no;
  const auto& prediction = std::get<Prediction>(outcome);
  const Program& program = prediction.program;
  const std::vector<Fault> faults = verify(program);
  POLYPHONY_CHECK(faults.empty(), name(faults.front().kind) << ": " << faults.front().text);
  answer.layout = describe(scenario.model, layout);
  answer.balance = name(layout.balance);
  answer.device_memory = scenario.cluster.device.memory;
  const Splitting by = splitting(scenario, layout, profile, planned.inputs->sizes());
  for (const Branch& branch : plan.branches)
    for (std::size_t s = 0; s < branch.stages.size(); ++s) {
      PlannedStage row = planned_stage(scenario, by.layers, branch, s);
      for (std::uint32_t rank = 0; rank < program.ranks; ++rank)
        if (branch.holds(Rank(rank), s))
          row.memory = std::max(row.memory, prediction.memory[rank].peak);
      answer.stages.push_back(std::move(row));
    }
  answer.splits = planned_splits(scenario, layout, plan, by, profile);
  answer.global_batch = scenario.data.global_batch;
  if (layout.planner != Planning::none) {
    const Layout& resolved = planned.resolved;
    const auto other =
        predict(scenario, without_planner(resolved), batch, profile, Predictor::estimate);
    if (const auto* no = std::get_if<Infeasible>(&other)) return *no;
    const auto& unplanned = std::get<Prediction>(other);
    const auto compared = [&](auto& both) {
      both.step = prediction.estimate.step();
      both.unplanned = unplanned.estimate.step();
    };
    if (layout.planner == Planning::dip) {
      compared(answer.order.emplace(searched_order(scenario, resolved, plan, batch)));
      for (const RankMemory& rank : unplanned.memory)
        if (answer.device_memory > Bytes(0) && rank.peak > answer.device_memory)
          answer.order->unplanned_fits = false;
      answer.order->microbatches = microbatch_work(plan, unplanned, prediction);
    } else {
      compared(answer.work.emplace(planned_work(scenario, layout, plan, batch)));
      answer.work->microbatches = microbatch_work(plan, unplanned, prediction);
    }
  }
  answer.program = {program.ranks, program.ops.size(), program.messages.size(), hash(program)};
  if (const auto no = check_runnable(scenario, layout)) answer.simulation_only = no->reason;
  return answer;
}

}  // namespace polyphony::sim
