#include "traces/evidence/run_folder.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "shared/check/check.h"
#include "shared/data/batch_json.h"
#include "shared/files/run_paths.h"
#include "shared/hardware/hardware_json.h"
#include "shared/step/step_record.h"

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

// Journals of the ranks of a run that was killed while it traced. A rank whose trace files were
// written has no journal.
class Journals {
 public:
  Journals(const RunPaths& paths, int ranks, const Files& files) {
    for (int r = 0; r < ranks; ++r) {
      const std::string file = paths.journal(static_cast<std::uint32_t>(r));
      if (!files.exists(file)) continue;
      Journal& journal = journals_[r];
      journal.file = file;
      journal.text = std::make_unique<std::istringstream>(files.load(file));
      journal.reader = std::make_unique<JournalReader>(*journal.text, file);
    }
  }
  bool any() const { return !journals_.empty(); }
  bool of(int rank) const { return journals_.count(rank) > 0; }
  // Returns true if every journal holds the step.
  bool hold(std::uint64_t step) const {
    return std::all_of(journals_.begin(), journals_.end(), [&](const auto& journal) {
      const auto& steps = journal.second.reader->steps();
      return std::find(steps.begin(), steps.end(), step) != steps.end();
    });
  }
  RecordedPart part(int rank, std::uint64_t step) const {
    const Journal& journal = journals_.at(rank);
    RecordedPart part{Rank(static_cast<std::size_t>(rank)), journal.reader->read(step).value(),
                      journal.reader->clock().error(), journal.file};
    move_to(journal.reader->clock(), part.ops);
    return part;
  }

 private:
  struct Journal {
    std::string file;
    std::unique_ptr<std::istringstream> text;
    std::unique_ptr<JournalReader> reader;
  };
  std::map<int, Journal> journals_;
};

}  // namespace

std::string pace_text(const PaceModel& pace) {
  return nlohmann::json{{"scale", pace.scale},
                        {"profile", nlohmann::json(json_value(pace.profile))}}
             .dump(2) +
         "\n";
}

Measurement read_run_folder(const std::string& folder, const Files& files) {
  const RunPaths paths{folder};
  if (!files.exists(paths.scenario()))
    throw InputError(folder, "", "is not the folder of a run",
                     "`polyphony run --out FOLDER --trace-steps 5:15` makes one");
  if (!files.exists(paths.batches()))
    throw InputError(folder, "", "has no traced steps",
                     "run it with --trace-steps FIRST:LAST, such as 5:15");
  Measurement run;
  run.source = folder;
  run.scenario_file = paths.scenario();
  run.scenario = read_scenario(files.load(run.scenario_file), run.scenario_file, files.load);
  run.pace = read_pace(paths.pace(), files);
  // Batches are read from the steps. In folders of versions that did not record the split, stages
  // were split by FLOPs.
  const Layout layout = require_layout(run.scenario);
  const bool split = is_split(run.scenario, layout);
  if (!split) files.read_samples(run.scenario);
  const int ranks = world_size(layout);
  const std::string batches = paths.batches();
  std::map<std::uint64_t, StepPlan> plans;
  if (files.exists(paths.plans()))
    for (StepRecord& record : parse_plans(files.load(paths.plans()), paths.plans()))
      if (!record.late) plans.emplace(record.step, std::move(record.plan));
  std::vector<TracedStep> steps;
  const Journals journals(paths, ranks, files);
  std::size_t cut = 0;
  std::string lines = files.load(batches);
  if (journals.any()) lines.resize(lines.rfind('\n') + 1);  // killed while it wrote the last line
  for (StepBatch& recorded : parse_batches(lines, batches)) {
    if (!journals.hold(recorded.step)) {
      ++cut;
      continue;
    }
    TracedStep& step = steps.emplace_back();
    step.step = recorded.step;
    step.batch = std::move(recorded.batch);
    if (const auto plan = plans.find(step.step); plan != plans.end())
      step.plan = std::move(plan->second);
    for (int r = 0; r < ranks; ++r) {
      if (journals.of(r))
        step.recorded.push_back(journals.part(r, step.step));
      else
        step.files.push_back(
            paths.trace(static_cast<std::int64_t>(step.step), static_cast<std::uint32_t>(r)));
    }
  }
  if (journals.any())
    run.note = "the run was killed while it traced: " + std::to_string(steps.size()) +
               " steps were recorded by all ranks" +
               (cut > 0 ? ", " + std::to_string(cut) + " by some" : "");
  if (steps.empty())
    throw InputError(batches, "", "contains no traced step",
                     journals.any() ? "the run was killed before all ranks had recorded one"
                                    : "record some: polyphony run --trace-steps 5:15");
  read_steps(steps, files, run);  // uses the recorded split; predictions keep it
  if (!split) store_planned(layout, make_plan(run.scenario, layout), run.scenario);
  return run;
}

}  // namespace polyphony::traces
