#include "traces/evidence/run_folder.h"

#include <map>
#include <nlohmann/json.hpp>

#include "shared/files/run_paths.h"
#include "shared/hardware/hardware_json.h"
#include "shared/plan/step_record.h"
#include "shared/scenario/batch_json.h"

namespace polyphony::traces {
namespace {

std::optional<PaceModel> read_pace(const std::string& file, const Files& files) {
  if (!files.exists(file)) return {};
  const nlohmann::json value = nlohmann::json::parse(files.load(file), nullptr, false);
  if (!value.is_object() || !value.contains("scale") || !value["scale"].is_number() ||
      !value.contains("profile"))
    throw InputError(file, "", "is not {\"scale\": …, \"profile\": {…}}",
                     "rehearse again, or remove the file");
  return PaceModel{parse_profile(value["profile"].dump(), file), value["scale"].get<double>()};
}

}  // namespace

std::string pace_text(const PaceModel& pace) {
  return nlohmann::json{{"scale", pace.scale},
                        {"profile", nlohmann::json::parse(to_json(pace.profile))}}
             .dump(2) +
         "\n";
}

Measurement read_run_folder(const std::string& folder, const Files& files) {
  const RunPaths paths{folder};
  if (!files.exists(paths.scenario()))
    throw InputError(folder, "", "is not the folder of a run",
                     "`polyphony run --out FOLDER --trace-steps 5:15` makes one");
  Measurement run;
  run.source = folder;
  run.scenario_file = paths.scenario();
  run.scenario = read_scenario(files.load(run.scenario_file), run.scenario_file, files.load);
  run.pace = read_pace(paths.pace(), files);
  // The steps say what they trained on; folders from before runs wrote their split balanced FLOPs.
  const Layout layout = require_layout(run.scenario);
  const bool split = is_split(run.scenario.model, layout);
  if (!split) files.read_samples(run.scenario);
  const int ranks = world_size(layout);
  const std::string batches = paths.batches();
  std::map<std::uint64_t, StepPlan> plans;
  if (files.exists(paths.plans()))
    for (StepRecord& record : parse_plans(files.load(paths.plans()), paths.plans()))
      if (!record.late) plans.emplace(record.step, std::move(record.plan));
  std::vector<TracedStep> steps;
  for (StepBatch& recorded : parse_batches(files.load(batches), batches)) {
    TracedStep& step = steps.emplace_back();
    step.step = recorded.step;
    step.batch = std::move(recorded.batch);
    if (const auto plan = plans.find(step.step); plan != plans.end())
      step.plan = std::move(plan->second);
    for (int r = 0; r < ranks; ++r)
      step.files.push_back(
          paths.trace(static_cast<std::int64_t>(step.step), static_cast<std::uint32_t>(r)));
  }
  if (steps.empty())
    throw InputError(batches, "", "names no traced step",
                     "record some: polyphony run --trace-steps 5:15");
  read_steps(steps, files, run);  // of the Program as it was written; predictions keep its split
  if (!split) run.scenario.layout = with_blocks(layout, make_plan(run.scenario, layout));
  return run;
}

}  // namespace polyphony::traces
