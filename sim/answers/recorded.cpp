#include "sim/answers/recorded.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "shared/hardware/hardware_json.h"
#include "shared/plan/lower.h"
#include "shared/scenario/batch_json.h"
#include "shared/scenario/scenario_json.h"
#include "sim/commands/command.h"
#include "sim/commands/console.h"
#include "traces/format/chrome_json.h"

namespace polyphony::sim {

std::string pace_text(const PaceModel& pace) {
  return nlohmann::json{{"scale", pace.scale},
                        {"profile", nlohmann::json::parse(to_json(pace.profile))}}
             .dump(2) +
         "\n";
}

namespace {

std::optional<PaceModel> read_pace(const std::string& file) {
  if (!std::filesystem::exists(file)) return {};
  const nlohmann::json value = nlohmann::json::parse(read_file(file), nullptr, false);
  if (!value.is_object() || !value.contains("scale") || !value["scale"].is_number() ||
      !value.contains("profile"))
    throw InputError(file, "", "is not {\"scale\": …, \"profile\": {…}}",
                     "rehearse again, or remove the file");
  return PaceModel{parse_profile(value["profile"].dump(), file), value["scale"].get<double>()};
}

}  // namespace

RecordedRun load_recorded(const std::string& folder) {
  if (!std::filesystem::is_directory(folder))
    throw InputError(folder, "", "is not the folder of a run",
                     "`polyphony run --out FOLDER --trace-steps 5:15` makes one");
  RecordedRun run;
  run.folder = folder;
  run.scenario = read_scenario_file(folder + "/scenario.json");
  run.pace = read_pace(folder + "/pace.json");
  // The steps say what they trained on; folders from before runs wrote their split balanced FLOPs.
  const Layout layout = require_layout(run.scenario);
  if (!is_split(run.scenario.model, layout)) read_samples(run.scenario);
  const Plan plan = make_plan(run.scenario, layout);
  run.scenario.layout = with_blocks(layout, plan);
  const std::string batches_file = folder + "/trace/batches.jsonl";
  const std::vector<StepBatch> batches = parse_batches(read_file(batches_file), batches_file);
  if (batches.empty())
    throw InputError(batches_file, "", "names no traced step",
                     "record some: polyphony run --trace-steps 5:15");
  run.program = lower(run.scenario, layout, plan, batches[batches.size() / 2].batch);
  for (const StepBatch& step : batches) {
    Program program = lower(run.scenario, layout, plan, step.batch);
    if (program.ops.size() != run.program.ops.size())
      continue;  // another mix of empty work items: not the same ops
    std::vector<traces::Trace> parts;
    std::vector<std::string> files;
    for (std::uint32_t r = 0; r < program.ranks; ++r) {
      files.push_back(folder + "/trace/step-" + std::to_string(step.step) + ".rank-" +
                      std::to_string(r) + ".json");
      parts.push_back(traces::read_trace(read_file(files.back()), files.back(), program));
    }
    run.steps.push_back(traces::merge(program, parts, files));
    run.step_programs.push_back(std::move(program));
  }
  return run;
}

}  // namespace polyphony::sim
