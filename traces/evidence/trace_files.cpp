#include "traces/evidence/trace_files.h"

#include <algorithm>
#include <map>

#include "shared/check/check.h"
#include "shared/data/batch_json.h"
#include "shared/error.h"
#include "shared/scenario/typical_batch.h"
#include "shared/split/planned_layout.h"
#include "traces/evidence/step_file.h"

namespace polyphony::traces {
namespace {

Batch batch_of(const std::string& file, std::uint64_t step, const Scenario& scenario,
               const Files& files) {
  const std::string recorded = beside(file, "batches.jsonl");
  if (!files.exists(recorded)) return batch_of_step(scenario, step);
  const std::vector<StepBatch> batches = parse_batches(files.load(recorded), recorded);
  const auto found = std::find_if(batches.begin(), batches.end(),
                                  [&](const StepBatch& batch) { return batch.step == step; });
  if (found == batches.end())
    throw InputError(
        recorded, "",
        "does not contain step " + std::to_string(step) + ", of which " + file + " is a trace",
        "keep traces in the folder with batches.jsonl of their own run");
  return found->batch;
}

}  // namespace

Measurement read_trace_files(const std::vector<std::string>& paths, const Scenario& scenario,
                             const HardwareProfile& profile, const Files& files) {
  POLYPHONY_CHECK(!paths.empty(), "no trace file");
  const Layout& layout = require_layout(scenario);
  std::map<std::uint64_t, TracedStep> steps;
  Measurement result;
  for (const std::string& path : paths) {
    const StepFile head = read_step_file_head(files.load(path), path);
    const std::uint64_t number = head.step;
    if (head.profiled)
      result.note =
          "recorded with PyTorch's profiler, whose own work is part of the times: short ops seem "
          "slower than they are (--trace-steps records without it)";
    TracedStep& step = steps[number];
    if (step.files.empty()) step.batch = batch_of(path, number, scenario, files);
    step.step = number;
    step.files.push_back(path);
  }
  result.source = paths.front();
  if (paths.size() > 1) result.source += " and " + std::to_string(paths.size() - 1) + " more";
  result.scenario_file = scenario.file;
  result.scenario = scenario;
  const PlannedLayout planned = plan_layout(borrow_inputs(scenario, profile), layout);
  store_planned(layout, planned.plan, result.scenario);
  std::vector<TracedStep> in_order;
  for (auto& [number, step] : steps) in_order.push_back(std::move(step));
  read_steps(in_order, files, result);
  return result;
}

}  // namespace polyphony::traces
