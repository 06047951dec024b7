#include "sim/launching/phase_folders.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "shared/checkpoint/checkpoint_manifest_json.h"
#include "shared/files/whole.h"
#include "shared/scenario_io/run_record_json.h"
#include "tests/shared/support/scenario_files.h"
#include "tests/shared/support/temp_folder.h"

using namespace polyphony;
using namespace polyphony::sim;

namespace {

std::vector<TrainingPhase> three() {
  std::vector<TrainingPhase> phases;
  for (const char* name : {"a", "b", "c"})
    phases.push_back({name, test::scenario_at("scenarios/tiny.json")});
  phases[1].scenario.training.learning_rate = 0.5;
  for (TrainingPhase& phase : phases) phase.scenario.training.steps = 10;
  return phases;
}

// Leaves what a run of the phase leaves that has saved a checkpoint at `step`.
void begin(const std::string& out, const TrainingPhase& phase, std::int64_t step) {
  const RunPaths run{phase_folder(out, phase.name)};
  test::spill(run.lock(), "The folder of a polyphony run.\npolyphony run, process 1\n");
  test::spill(run.metrics(), "");
  if (step < 0) return;
  Manifest manifest;
  manifest.step = step;
  manifest.format = "F32";
  manifest.run = run_record(phase.scenario);
  test::spill(manifest_file(step_folder(run.checkpoints(), step)), to_json(manifest));
}

std::string refusal(const std::string& out, const std::vector<TrainingPhase>& phases,
                    EarlierRun earlier) {
  try {
    first_to_train(out, phases, earlier);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a phase has ended at its last step, or where the record says") {
  const test::TempFolder out;
  const std::vector<TrainingPhase> phases = three();
  const std::string folder = phase_folder(out.path(), "a");
  CHECK_FALSE(holds_run(folder));
  CHECK_FALSE(has_ended(folder, 10));
  begin(out.path(), phases[0], -1);
  CHECK(holds_run(folder));
  CHECK_FALSE(has_ended(folder, 10));
  begin(out.path(), phases[0], 6);
  CHECK_FALSE(has_ended(folder, 10));
  record_end(folder, 10, 6);  // it stopped by itself
  CHECK(has_ended(folder, 10));
  CHECK_FALSE(has_ended(folder, 12));  // the phase has become longer
  begin(out.path(), phases[0], 8);     // it went on
  CHECK_FALSE(has_ended(folder, 10));
  begin(out.path(), phases[0], 10);
  CHECK(has_ended(folder, 10));
  CHECK_FALSE(has_ended(folder, 11));
}

TEST_CASE("a resumed run continues in the first phase that has not ended") {
  const test::TempFolder out;
  const std::vector<TrainingPhase> phases = three();
  CHECK(first_to_train(out.path(), phases, EarlierRun::refuse) == 0);
  begin(out.path(), phases[0], 4);
  CHECK(first_to_train(out.path(), phases, EarlierRun::resume) == 0);
  begin(out.path(), phases[0], 10);
  CHECK(first_to_train(out.path(), phases, EarlierRun::resume) == 1);
  begin(out.path(), phases[1], -1);
  CHECK(first_to_train(out.path(), phases, EarlierRun::resume) == 1);
  begin(out.path(), phases[1], 10);
  begin(out.path(), phases[2], 10);
  CHECK(first_to_train(out.path(), phases, EarlierRun::resume) == 3);
  CHECK(first_to_train(out.path(), phases, EarlierRun::remove) == 0);
  CHECK(refusal(out.path(), phases, EarlierRun::refuse).starts_with(out / "a: belongs to an "));
}

TEST_CASE("phases of another scenario, and phases that began too early, are refused by name") {
  const test::TempFolder out;
  std::vector<TrainingPhase> phases = three();
  for (const TrainingPhase& phase : phases) begin(out.path(), phase, 10);
  phases[1].scenario.training.learning_rate = 0.25;
  CHECK(refusal(out.path(), phases, EarlierRun::resume) ==
        out / "b" +
            ": phase \"b\" has ended there with another scenario: training.learning_rate "
            "was 0.5, is 0.25 (--fresh trains all phases again; or choose another --out "
            "folder)");
  phases[1].scenario.training.learning_rate = 0.5;
  phases[0].scenario.training.steps = 11;
  CHECK(refusal(out.path(), phases, EarlierRun::resume) ==
        out / "b" +
            ": phase \"b\" has begun with earlier parameters of phase \"a\", which has not "
            "ended (--fresh trains all phases again; or choose another --out folder)");
}

TEST_CASE("removing phases leaves files of others alone") {
  const test::TempFolder out;
  const std::vector<TrainingPhase> phases = three();
  for (const TrainingPhase& phase : phases) begin(out.path(), phase, 10);
  test::spill(out / "b/notes.txt", "mine");
  remove_phases(out.path(), {"b", "c"});
  CHECK(holds_run(out / "a"));
  CHECK_FALSE(holds_run(out / "b"));
  CHECK_FALSE(holds_run(out / "c"));
  CHECK(test::slurp(out / "b/notes.txt") == "mine");
}
