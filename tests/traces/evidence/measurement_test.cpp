// Reads the same trace files from a run folder, and alone with a scenario: both give the same
// measurement.
#include "traces/evidence/measurement.h"

#include <doctest/doctest.h>

#include <map>

#include "shared/data/batch_json.h"
#include "shared/hardware/devices.h"
#include "shared/lower/lower.h"
#include "shared/scenario/typical_batch.h"
#include "shared/split/balanced_plan.h"
#include "shared/step/step_part.h"
#include "shared/step/step_plan.h"
#include "tests/shared/support/scenario_files.h"
#include "traces/calibrate/calibrate.h"
#include "traces/evidence/run_folder.h"
#include "traces/evidence/trace_files.h"
#include "traces/format/chrome_json.h"

namespace polyphony::traces {
namespace {

constexpr const char* kScenario = "scenarios/tiny.json";

template <class Body>
std::string refusal(const Body& body) {
  try {
    body();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// Files by path; other files are read from disk.
struct Disk {
  std::map<std::string, std::string> texts;
  Files files() const {
    return {[this](const std::string& path) {
              const auto found = texts.find(path);
              return found == texts.end() ? test::file_text(path) : found->second;
            },
            [this](const std::string& path) { return texts.count(path) > 0; }, [](Scenario&) {}};
  }
};

HardwareProfile roofline() { return *find_profile("cpu-core-roofline"); }

// Every op starts a microsecond after the previous one, in the order of the Program. None has ended
// when the last one begins, so that no message arrives before it was sent.
Timeline one_after_another(const Program& program) {
  Timeline timeline;
  const auto all = program.ops.size();
  for (std::size_t op = 0; op < all; ++op)
    timeline.ops.push_back({OpId(op), Seconds(1e-6 * static_cast<double>(op)),
                            Seconds(1e-6 * static_cast<double>(all + op))});
  timeline.makespan = timeline.ops.back().end;
  return timeline;
}

Timeline of_rank(const Program& program, const Timeline& whole, Rank rank) {
  Timeline part{{}, whole.makespan};
  for (const OpTime& time : whole.ops)
    if (program.rank_of(program.ops[time.op.value]) == rank) part.ops.push_back(time);
  return part;
}

// The batch of a step and the traces of its ranks, as a run writes them to "run".
void record_step(const Scenario& scenario, const Plan& plan, std::uint64_t step, Disk& disk) {
  const Batch batch = batch_of_step(scenario, step);
  disk.texts["run/trace/batches.jsonl"] += to_json_line(step, batch) + "\n";
  const Program program = lower(scenario, *scenario.layout, plan, batch);
  for (std::uint32_t r = 0; r < program.ranks; ++r)
    disk.texts["run/trace/step-" + std::to_string(step) + ".rank-" + std::to_string(r) + ".json"] =
        write_trace(program, of_rank(program, one_after_another(program), Rank(r)),
                    TraceKind::measured, step);
}

// Steps 4 and 5 of tiny.json, stages split by the profile.
Disk recorded_run(const HardwareProfile& profile = roofline()) {
  Scenario scenario = test::scenario_at(kScenario);
  const Plan plan = balanced_plan(scenario, *scenario.layout, profile);
  scenario.layout = with_blocks(*scenario.layout, plan);
  Disk disk;
  disk.texts["run/scenario.json"] = resolved_text(scenario);
  for (const std::uint64_t step : {4, 5}) record_step(scenario, plan, step, disk);
  return disk;
}

}  // namespace

TEST_CASE("a run folder and its trace files alone give the same measurement") {
  const Disk disk = recorded_run();
  const Measurement folder = read_run_folder("run", disk.files());
  CHECK(folder.source == "run");
  CHECK_FALSE(folder.pace.has_value());
  REQUIRE(folder.steps.size() == 2);
  CHECK(folder.steps[0].makespan.count() ==
        doctest::Approx(1e-6 * static_cast<double>(2 * folder.program().ops.size() - 1)));

  const Measurement files =
      read_trace_files({"run/trace/step-5.rank-1.json", "run/trace/step-4.rank-0.json",
                        "run/trace/step-4.rank-1.json", "run/trace/step-5.rank-0.json"},
                       test::scenario_at(kScenario), roofline(), disk.files());
  CHECK(files.source == "run/trace/step-5.rank-1.json and 3 more");
  CHECK(files.layout() == folder.layout());
  CHECK(hash(files.program()) == hash(folder.program()));
  REQUIRE(files.steps.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(files.steps[i] == folder.steps[i]);

  // A fit to one is the fit to the other.
  const HardwareProfile prior = *shipped_profile(folder.scenario.cluster);
  const auto fitted = [&](const Measurement& measured) {
    return calibrate(prior, {measured_run(measured)}, "fitted", "software", "source").profile;
  };
  CHECK(fitted(files) == fitted(folder));
}

// Two actions of step 5 are swapped, as a planner may do.
TEST_CASE("calibration uses the steps that run the same ops as the middle one") {
  const Disk disk = recorded_run();
  Measurement run = read_run_folder("run", disk.files());
  CHECK(measured_run(run).steps.size() == 2);
  REQUIRE(run.middle == 1);
  Program& program = run.step_programs[1];
  std::vector<Op*> forwards;
  for (Op& op : program.ops)
    if (const auto* compute = std::get_if<Compute>(&op.what);
        compute != nullptr && compute->phase == Phase::forward)
      forwards.push_back(&op);
  REQUIRE(forwards.size() > 1);
  std::swap(forwards[0]->what, forwards[1]->what);
  const MeasuredRun kept = measured_run(run);
  REQUIRE(kept.steps.size() == 1);
  CHECK(kept.steps.front() == run.steps[1]);
}

TEST_CASE("stages that the scenario does not split are split as the run split them") {
  HardwareProfile slow_vision = roofline();
  for (const Phase phase : {Phase::forward, Phase::backward})
    slow_vision.corrections[{LayerKind::encoder_block, phase}] = 10;
  const Scenario scenario = test::scenario_at(kScenario);
  const Plan by_flops = make_plan(scenario, *scenario.layout);
  const Plan by_seconds = balanced_plan(scenario, *scenario.layout, slow_vision);
  REQUIRE_FALSE(by_flops.branches[0].stages == by_seconds.branches[0].stages);
  const Disk disk = recorded_run(slow_vision);
  const std::vector<std::string> paths{"run/trace/step-4.rank-0.json",
                                       "run/trace/step-4.rank-1.json"};
  const Measurement files = read_trace_files(paths, scenario, slow_vision, disk.files());
  CHECK(files.scenario.layout == with_blocks(*scenario.layout, by_seconds));
  CHECK(hash(files.program()) == hash(read_run_folder("run", disk.files()).step_programs[0]));
  CHECK(refusal([&] {
          read_trace_files(paths, scenario, roofline(), disk.files());
        }).find("another Program") != std::string::npos);
}

// Such Programs do not state the split; predictions do.
TEST_CASE("a folder of a version that did not record the split is read") {
  const Scenario scenario = test::scenario_at(kScenario);
  Disk disk;
  disk.texts["run/scenario.json"] = test::file_text(kScenario);
  const Plan plan = make_plan(scenario, *scenario.layout);
  record_step(scenario, plan, 4, disk);
  const Measurement folder = read_run_folder("run", disk.files());
  CHECK(folder.steps.size() == 1);
  CHECK(folder.scenario.layout == with_blocks(*scenario.layout, plan));
}

TEST_CASE("a single step without the batches of its run uses the batch of the scenario") {
  Disk disk = recorded_run();
  disk.texts.erase("run/trace/batches.jsonl");
  const Measurement one =
      read_trace_files({"run/trace/step-4.rank-0.json", "run/trace/step-4.rank-1.json"},
                       test::scenario_at(kScenario), roofline(), disk.files());
  CHECK(one.steps.size() == 1);
}

TEST_CASE("files that are not a measurement are rejected by name") {
  const Scenario scenario = test::scenario_at(kScenario);
  Disk disk = recorded_run();
  const Files files = disk.files();
  CHECK(refusal([&] { read_run_folder("elsewhere", files); }).find("is not the folder of a run") !=
        std::string::npos);
  Disk untraced = recorded_run();
  untraced.texts.erase("run/trace/batches.jsonl");
  CHECK(refusal([&] {
          read_run_folder("run", untraced.files());
        }).find("has no traced steps (run it with --trace-steps FIRST:LAST") != std::string::npos);
  CHECK(refusal([&] {
          read_trace_files({"run/trace/step-4.rank-0.json"}, scenario, roofline(), files);
        }).find("give the files of all 2 ranks") != std::string::npos);
  CHECK(refusal([&] {
          read_trace_files({"run/trace/step-4.rank-0.json", "run/trace/step-4.rank-1.json"},
                           test::scenario_at("scenarios/tiny_non_colocated.json"), roofline(),
                           files);
        }).find("another Program") != std::string::npos);
  // A prediction is not a measurement.
  const Plan plan = balanced_plan(scenario, *scenario.layout, roofline());
  const Program program =
      lower(scenario, with_blocks(*scenario.layout, plan), plan, batch_of_step(scenario, 0));
  disk.texts["step.json"] =
      write_trace(program, one_after_another(program), TraceKind::predicted, 0);
  CHECK(refusal([&] {
          read_trace_files({"step.json"}, scenario, roofline(), files);
        }).find("is a prediction") != std::string::npos);
  disk.texts["run/pace.json"] = "{}";
  CHECK(refusal([&] { read_run_folder("run", files); }).starts_with("run/pace.json: is not"));
}

TEST_CASE("a run killed while it traced provides the steps that all ranks recorded") {
  Disk disk = recorded_run();
  const Measurement whole = read_run_folder("run", disk.files());
  CHECK(whole.note.empty());
  const Scenario& scenario = whole.scenario;
  const Plan plan = make_plan(scenario, *scenario.layout);
  // Rank 1's clock is 7 s behind; rank 0 was killed before it had recorded step 5.
  const auto journal = [&](std::uint32_t rank, const std::vector<std::size_t>& steps,
                           Seconds behind) {
    std::string bytes =
        journal_head() + journal_entry(ClockSample{Seconds(0), behind, Seconds(2e-5)});
    for (const std::size_t s : steps) {
      const Program& program = whole.step_programs[s];
      const Batch batch = batch_of_step(scenario, 4 + s);
      JournalStep step{
          4 + s, digest(make_step_plan(scenario, *scenario.layout, plan, batch), batch),
          false, {},
          {},    {}};
      for (OpTime op : of_rank(program, whole.steps[s], Rank(rank)).ops) {
        op.op = OpId(op.op.value - program.ops_of(Rank(rank)).begin);
        op.start -= behind;
        op.end -= behind;
        step.ops.push_back(op);
      }
      bytes += journal_entry(step);
    }
    return bytes;
  };
  for (const char* rank : {"0", "1"})
    for (const char* step : {"4", "5"})
      disk.texts.erase(std::string("run/trace/step-") + step + ".rank-" + rank + ".json");
  disk.texts["run/trace/journal.rank-0.bin"] = journal(0, {0}, Seconds(0));
  disk.texts["run/trace/journal.rank-1.bin"] = journal(1, {0, 1}, Seconds(7));
  disk.texts["run/trace/batches.jsonl"] += "{\"step\": 6, \"sam";
  const Measurement killed = read_run_folder("run", disk.files());
  CHECK(killed.note ==
        "the run was killed while it traced: 1 steps were recorded by all ranks, 1 by some");
  CHECK(killed.clock_error == Seconds(2e-5));
  REQUIRE(killed.steps.size() == 1);
  REQUIRE(killed.steps[0].ops.size() == whole.steps[0].ops.size());
  for (std::size_t op = 0; op < whole.steps[0].ops.size(); ++op) {
    CHECK(killed.steps[0].ops[op].op == whole.steps[0].ops[op].op);
    CHECK(killed.steps[0].ops[op].start.count() ==
          doctest::Approx(whole.steps[0].ops[op].start.count()));
  }
  // Another batch has another plan.
  disk.texts["run/trace/batches.jsonl"] = to_json_line(4, batch_of_step(scenario, 9)) + "\n";
  CHECK(refusal([&] { read_run_folder("run", disk.files()); }).find("plan that differs") !=
        std::string::npos);
  disk.texts["run/trace/journal.rank-0.bin"] = journal(0, {}, Seconds(0));
  CHECK(refusal([&] {
          read_run_folder("run", disk.files());
        }).find("was killed before all ranks") != std::string::npos);
}

TEST_CASE("the pace of a rehearsal is read back as it was written") {
  Disk disk = recorded_run();
  const PaceModel pace{*find_profile("cpu-core-roofline"), 6.5};
  disk.texts["run/pace.json"] = pace_text(pace);
  const Measurement paced = read_run_folder("run", disk.files());
  REQUIRE(paced.pace.has_value());
  CHECK(paced.pace->scale == 6.5);
  CHECK(paced.pace->profile == pace.profile);
}

}  // namespace polyphony::traces
