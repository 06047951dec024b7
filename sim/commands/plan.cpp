// polyphony plan: what a layout means, without running anything.
#include <iostream>

#include "shared/scenario/scenario_json.h"
#include "sim/answers/answers_json.h"
#include "sim/commands/command.h"
#include "sim/console/console.h"

namespace polyphony::sim {
int plan_command(int argc, char** argv) {
  Arguments args(
      "plan",
      "What a scenario's layout means: stages, ranks, layers, parameters; checks it and "
      "its Program.",
      "SCENARIO",
      "  polyphony plan scenarios/rehearse_8.json\n  polyphony plan "
      "scenarios/rehearse_8.json --resolved   every default spelled out\n  polyphony plan "
      "scenarios/rehearse_8.json --set layout.language.pp=3 --set layout.language.ranks=3   what "
      "if?");
  args.add()("scenario", "scenario file", cxxopts::value<std::string>())(
      "resolved", "print the scenario with everything derived spelled out");
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
  if (scenario.layout)
    require_memory(scenario, require_layout(scenario), {.predictor = Predictor::estimate});
  const PlanAnswer answer = answer_plan(scenario, profile);
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
  std::cout << "\n" << answer.layout << "\n\n";
  Table stages({"stage", "ranks", "grid", "layers", "parameters/rank"});
  for (const PlannedStage& s : answer.stages)
    stages.add(
        {std::to_string(s.stage), s.ranks, s.grid, s.layers, count_text(s.parameters_per_rank)});
  std::cout << stages.text() << "\nProgram of one step: "
            << counted(static_cast<std::int64_t>(answer.program->ops), "op", "ops") << ", "
            << counted(static_cast<std::int64_t>(answer.program->messages), "message", "messages")
            << ", verified.\n";
  if (!answer.simulation_only.empty())
    std::cout << "Simulation only: " << answer.simulation_only << "\n";
  return 0;
}

}  // namespace polyphony::sim
