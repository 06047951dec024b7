// Readers of plans and of user-written actions, as in tests/fuzz/fuzz_test.cpp.
#include "shared/scenario/typical_batch.h"
#include "shared/scenario_io/data_set.h"
#include "shared/scenario_io/scenario_profile.h"
#include "shared/schedule/action_text.h"
#include "shared/split/balanced_plan.h"
#include "shared/step/step_record.h"
#include "sim/schedules/module_actions.h"
#include "sim/schedules/stage_times.h"
#include "tests/fuzz/fuzz.h"
#include "tests/shared/support/resealed.h"

namespace polyphony {
namespace {

using test::mutated_lines;

// Damaged, with checksums of the damaged text.
void check_plan_files(const Scenario& scenario, const Layout& layout, const Plan& plan) {
  const Batch batch = typical_batch(scenario);
  const StepRecord record{0, digest(StepPlan{}, batch), false,
                          make_step_plan(scenario, layout, plan, batch)};
  const std::string bytes = to_bytes(record), whole = plans_head() + plans_entry(record);
  fuzz::check_reader(
      [&](std::uint64_t seed) {
        if (seed % 4 == 0) return mutated_lines(seed, whole, " ");
        std::string file = whole;
        return file.replace(whole.size() - bytes.size(), bytes.size(), test::resealed(bytes, seed));
      },
      [&](const std::string& text) {
        for (const StepRecord& read : parse_plans(text, "plans.bin")) {
          if (read.late) continue;
          const auto faults = check_step(scenario.model, plan, read.plan, batch);
          if (!faults.empty())
            throw InputError("plans.bin", "", faults.front(), "replay plans of this layout");
        }
      });
}

}  // namespace

TEST_CASE("fuzz: files of plans") {
  Scenario scenario = test::scenario_at("scenarios/tiny_non_colocated.json");
  scenario.layout->planner = Planning::entrain;
  check_plan_files(scenario, *scenario.layout, make_plan(scenario, *scenario.layout));
}

// Plans with recipes, split backwards, and an order for each of two replicas.
TEST_CASE("fuzz: files of plans by planner dip") {
  const std::string path = "scenarios/varying/tiny_clips.json";
  std::string text = test::file_text(path);
  for (const auto& [from, to] :
       {std::pair{"\"ranks\": 2}", "\"ranks\": 4}"}, std::pair{"\"count\": 2", "\"count\": 4"},
        std::pair{"\"count\": 2", "\"count\": 4"}})
    text.replace(text.find(from), std::string(from).size(), to);
  Scenario scenario = read_scenario(text, path, test::file_text);
  load_samples(scenario, "", test::file_text);
  const Plan plan =
      balanced_plan(scenario, *scenario.layout, scenario_profile(scenario, test::file_text));
  check_plan_files(scenario, with_blocks(*scenario.layout, plan), plan);
}

TEST_CASE("fuzz: user-written actions, of a chain and by module") {
  const std::string times =
      "module,stage,microbatch,forward,backward_input,backward_weight,bytes,message\n"
      "vision,0,0,1s,1s,1s,1,0\nvision,0,1.0,0.5s,500ms,0.5,1MiB,1e-3\nvision,0,1.1,0.5s,0.5s,0.5s,"
      "1,0\n"
      "language,0,all,1s,1s,1s,1,0\n";
  const auto lines = [](std::string text, std::string separators) {
    return [text = std::move(text), separators = std::move(separators)](std::uint64_t seed) {
      return mutated_lines(seed, text, separators);
    };
  };
  const sim::StageTimes known = sim::read_stage_times(times, "times.csv", 2);
  fuzz::check_reader(lines(times, ",."),
                     [](const std::string& text) { sim::read_stage_times(text, "times.csv", 2); });
  fuzz::check_reader(
      lines("vision 0F0,vision 0F1,,vision 0B0,vision 0I1,vision 0W1\n,\"language 0F0\","
            "language 0B0,language 0F1,language 0B1\n",
            ", "),
      [&](const std::string& text) {
        sim::names_modules(text, known);
        for (const Actions& actions : sim::read_module_actions(text, "own.csv", known))
          for (const Action& action : actions) CHECK(action.branch < known.modules.size());
      });
  fuzz::check_reader(lines("0F0,0F1,,0B0,0I1,0W1\n,1F0,1B0,1F1,1B1\n", ","),
                     [](const std::string& text) { read_orders(text, "own.csv"); });
}

}  // namespace polyphony
