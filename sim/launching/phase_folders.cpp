#include "sim/launching/phase_folders.h"

#include <filesystem>

#include "shared/checkpoint/checkpoint_reader.h"
#include "shared/files/whole.h"
#include "shared/scenario_io/run_record_json.h"

namespace polyphony::sim {
namespace {

constexpr const char* kAllAgain = "--fresh trains all phases again; or choose another --out folder";

std::int64_t newest_step(const std::string& folder) {
  const std::vector<std::int64_t> steps = steps_in(RunPaths{folder}.checkpoints());
  return steps.empty() ? -1 : steps.back();
}

// Returns the scenario as ranks read it: with absolute paths.
Scenario as_given_to_ranks(const Scenario& scenario) {
  const std::string here = std::filesystem::current_path().string();
  return read_scenario(movable_text(scenario, here), scenario.file, read_file);
}

// Throws InputError if the newest checkpoint in the folder is of another scenario than the phase's.
void check_same_scenario(const std::string& folder, const TrainingPhase& phase) {
  const RunPaths run{folder};
  const std::int64_t step = newest_step(folder);
  const std::string then = read_manifest(run.checkpoints(), step).run;
  if (then.empty()) return;
  const RecordDifferences differences =
      compare_records(then, run_record(as_given_to_ranks(phase.scenario)),
                      manifest_file(step_folder(run.checkpoints(), step)));
  for (const std::vector<std::string>* list : {&differences.another_model, &differences.changed})
    if (!list->empty())
      throw InputError(
          folder, "",
          "phase \"" + phase.name + "\" has ended there with another scenario: " + list->front(),
          kAllAgain);
}

}  // namespace

std::string phase_folder(const std::string& out, const std::string& phase) {
  return out + "/" + phase;
}

bool holds_run(const std::string& folder) {
  const RunPaths run{folder};
  return !run.present().empty() || !checkpoint_folders(run.checkpoints()).empty();
}

std::size_t first_to_train(const std::string& out, const std::vector<TrainingPhase>& phases,
                           EarlierRun earlier) {
  if (earlier == EarlierRun::remove) return 0;
  std::size_t first = 0;
  const auto folder = [&](std::size_t i) { return phase_folder(out, phases[i].name); };
  if (earlier == EarlierRun::resume) {
    while (first < phases.size() && has_ended(folder(first), phases[first].scenario.training.steps))
      check_same_scenario(folder(first), phases[first]), ++first;
    if (first == phases.size()) return first;
    std::vector<std::string> later;
    for (std::size_t i = first + 1; i < phases.size(); ++i) later.push_back(phases[i].name);
    check_later_phases(out, phases[first].name, later);
    return first;
  }
  for (std::size_t i = 0; i < phases.size(); ++i)
    if (holds_run(folder(i)))
      throw InputError(folder(i), "", "belongs to an earlier run",
                       "`polyphony run --resume` continues it, --fresh removes all phases; or "
                       "choose another --out folder");
  return first;
}

void check_later_phases(const std::string& out, const std::string& phase,
                        const std::vector<std::string>& later) {
  for (const std::string& name : later)
    if (holds_run(phase_folder(out, name)))
      throw InputError(phase_folder(out, name), "",
                       "phase \"" + name + "\" has begun with earlier parameters of phase \"" +
                           phase + "\", which has not ended",
                       kAllAgain);
}

void remove_phases(const std::string& out, const std::vector<std::string>& phases) {
  for (const std::string& name : phases)
    if (const std::string folder = phase_folder(out, name); holds_run(folder))
      RunFolder(folder, EarlierRun::remove, "polyphony run").begin();
}

}  // namespace polyphony::sim
