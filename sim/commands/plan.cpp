// polyphony plan: what a layout means, without running anything.
#include <iostream>

#include "shared/scenario_io/scenario_json.h"
#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/console/console.h"
#include "sim/console/failure.h"
#include "sim/pages/plan_page.h"
#include "sim/shown/plan_text.h"

namespace polyphony::sim {
int plan_command(int argc, char** argv) {
  Arguments args(
      "plan",
      "What a scenario's layout means: stages, ranks, layers, what they cost and hold, why they "
      "are "
      "split where they are; checks it and its Program.",
      "SCENARIO",
      "  polyphony plan scenarios/rehearse_8.json --report plan.html\n  polyphony plan "
      "scenarios/rehearse_8.json --resolved   every default spelled out\n  polyphony plan "
      "scenarios/rehearse_8.json --set layout.balance=unaware   as if everything were trained\n  "
      "polyphony plan scenarios/rehearse_8.json --stages 8   how many for each module?\n  "
      "polyphony plan scenarios/rehearse_8.json --set layout.language.pp=3 --set "
      "layout.language.ranks=3   what if?\n  polyphony plan scenarios/tiny_colocated.json "
      "--segments   encoders in parts between the language module's actions?");
  args.add()("scenario", "scenario file", cxxopts::value<std::string>())(
      "resolved", "print the scenario with everything derived spelled out")(
      "stages",
      "instead deal so many pipeline stages of equal ranks to the modules, each a pipeline of its "
      "own: "
      "aware of what trains, and unaware",
      cxxopts::value<int>())(
      "segments",
      "instead cut modules and microbatches for planner dip, all modules on the language module's "
      "ranks; --format json has the layout")(
      "report", "also draw the stages as one HTML page to a file", cxxopts::value<std::string>());
  args.add_profile("for stages that the layout does not split");
  args.add_overrides();
  args.positional({"scenario"});
  if (args.parse(argc, argv)) return 0;
  const std::vector<Override> overrides = args.overrides();
  const Scenario scenario = load_scenario(args.require("scenario"), overrides);
  const HardwareProfile profile = load_profile(scenario, args.profile(), overrides);
  if (args.has("resolved")) {
    std::cout << resolved_text(scenario) << "\n";
    return 0;
  }
  if (args.has("stages")) {
    const auto dealt = answer_joint(scenario, profile, args.integer("stages"));
    if (const auto* no = std::get_if<Infeasible>(&dealt))
      throw NoAnswer(ExitCode::infeasible, "--stages", "", no->reason);
    const auto& joint = std::get<JointAnswer>(dealt);
    std::cout << (args.json() ? to_json(joint).dump(2) + "\n" : joint_text(joint));
    return 0;
  }
  if (args.has("segments")) {
    const auto cut = answer_segments(scenario, profile);
    if (const auto* no = std::get_if<Infeasible>(&cut))
      throw NoAnswer(ExitCode::infeasible, "--segments", "", no->reason);
    const auto& segments = std::get<SegmentsAnswer>(cut);
    std::cout << (args.json() ? to_json(segments).dump(2) + "\n" : segments_text(segments));
    return 0;
  }
  if (scenario.layout)
    require_memory(scenario, require_layout(scenario), {.predictor = Predictor::estimate});
  const auto outcome = answer_plan(scenario, profile);
  if (const auto* no = std::get_if<Infeasible>(&outcome))
    throw NoAnswer(ExitCode::infeasible, scenario.file, "", no->reason);
  const auto& answer = std::get<PlanAnswer>(outcome);
  if (args.has("report")) {
    if (!answer.program)
      throw InputError(scenario.file, "/layout", "there is no layout to draw",
                       "`polyphony sweep " + scenario.file + "` finds one");
    write_file(args.text("report"), traces::to_html(plan_page(answer, scenario.file)));
  }
  if (args.json()) {
    std::cout << to_json(answer).dump(2) << "\n";
    return 0;
  }
  Table table({"module", "kind", "train", "parameters"});
  for (const PlannedModule& m : answer.modules)
    table.add({m.name, m.kind, m.trainable, count_text(m.parameters)});
  std::cout << table.text();
  if (!answer.program) {
    std::cout << "\nNo layout; `polyphony sweep " << scenario.file << "` finds one.\n";
    return 0;
  }
  std::cout << "\n" << answer.layout << "\n\n" << stages_text(answer) << "\n";
  for (const PlannedSplit& split : answer.splits)
    std::cout << split_text(split, answer.device_memory) << "\n";
  if (answer.order) std::cout << order_text(*answer.order) << "\n";
  if (answer.work) std::cout << work_text(*answer.work, answer.global_batch) << "\n";
  std::cout << "Program of one step: "
            << counted(static_cast<std::int64_t>(answer.program->ops), "op", "ops") << ", "
            << counted(static_cast<std::int64_t>(answer.program->messages), "message", "messages")
            << ", verified.\n";
  if (!answer.simulation_only.empty())
    std::cout << "Simulation only: " << answer.simulation_only << "\n";
  return 0;
}

}  // namespace polyphony::sim
