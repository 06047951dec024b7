// polyphony plan: what a layout means, without running anything.
#include <iostream>

#include "shared/layers/parameters.h"
#include "shared/layers/sizes.h"
#include "shared/plan/lower.h"
#include "shared/program/verify.h"
#include "shared/scenario/scenario_json.h"
#include "shared/scenario/typical_batch.h"
#include "shared/search/balanced_plan.h"
#include "sim/commands/command.h"
#include "sim/commands/console.h"
#include "sim/prediction/predict.h"

namespace polyphony::sim {
namespace {

std::string ranks_text(const ModuleLayout& grid, int stage) {
  const int cell = grid.tp * grid.cp * grid.dp();
  const int first = grid.first_rank + stage % grid.pp * cell;  // virtual stages come round again
  return cell == 1 ? std::to_string(first)
                   : std::to_string(first) + "-" + std::to_string(first + cell - 1);
}

nlohmann::json stage_rows(const Scenario& scenario, const Plan& plan) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Branch& branch : plan.branches) {
    for (std::size_t s = 0; s < branch.stages.size(); ++s) {
      std::string layers;
      std::int64_t parameters = 0;
      for (const Chunk& chunk : branch.stages[s].chunks) {
        const Module& module = scenario.model.modules[chunk.module.value];
        layers += (layers.empty() ? "" : ", ") + module.name + " [" +
                  std::to_string(chunk.layers.begin) + "," + std::to_string(chunk.layers.end) + ")";
        parameters += local_parameters(module, chunk.layers, {.tensor = branch.grid.tp});
      }
      rows.push_back({{"stage", s},
                      {"ranks", ranks_text(branch.grid, static_cast<int>(s))},
                      {"grid", describe(branch.grid)},
                      {"layers", layers},
                      {"parameters_per_rank", parameters}});
    }
  }
  return rows;
}

}  // namespace

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
  nlohmann::json modules = nlohmann::json::array();
  for (const Module& module : scenario.model.modules)
    modules.push_back({{"module", module.name},
                       {"kind", name(module.kind)},
                       {"trainable", name(module.trainable)},
                       {"parameters", parameter_count(module)}});
  nlohmann::json answer{{"modules", modules}};
  if (scenario.layout) {
    const Layout& layout = require_layout(scenario);
    const Plan plan = balanced_plan(scenario, layout, profile);
    const Program program = lower(scenario, layout, plan, typical_batch(scenario));
    const std::vector<Fault> faults = verify(program);
    POLYPHONY_CHECK(faults.empty(), name(faults.front().kind) << ": " << faults.front().text);
    answer["layout"] = describe(scenario.model, layout);
    answer["stages"] = stage_rows(scenario, plan);
    answer["program"] = {{"ranks", program.ranks},
                         {"ops", program.ops.size()},
                         {"messages", program.messages.size()},
                         {"hash", std::to_string(hash(program))}};
    if (const auto no = check_runnable(scenario, layout)) answer["simulation_only"] = no->reason;
  }
  if (args.json()) {
    std::cout << answer.dump(2) << "\n";
    return 0;
  }
  Table table({"module", "kind", "train", "parameters"});
  for (const auto& m : modules)
    table.add(
        {m["module"], m["kind"], m["trainable"], count_text(m["parameters"].get<std::int64_t>())});
  std::cout << table.text();
  if (!scenario.layout) {
    std::cout << "\nNo layout; `polyphony sweep " << scenario.file << "` finds one.\n";
    return 0;
  }
  std::cout << "\n" << answer["layout"].get<std::string>() << "\n\n";
  Table stages({"stage", "ranks", "grid", "layers", "parameters/rank"});
  for (const auto& s : answer["stages"])
    stages.add({std::to_string(s["stage"].get<int>()), s["ranks"], s["grid"], s["layers"],
                count_text(s["parameters_per_rank"].get<std::int64_t>())});
  std::cout << stages.text()
            << "\nProgram of one step: " << count_text(answer["program"]["ops"].get<std::int64_t>())
            << " ops, " << count_text(answer["program"]["messages"].get<std::int64_t>())
            << " messages, verified.\n";
  if (answer.contains("simulation_only"))
    std::cout << "Simulation only: " << answer["simulation_only"].get<std::string>() << "\n";
  return 0;
}

}  // namespace polyphony::sim
