// polyphony plan: checks a layout and prints its stages, without running anything.
#include <iostream>
#include <sstream>

#include "shared/check/check.h"
#include "shared/scenario_io/scenario_json.h"
#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/console/console.h"
#include "sim/console/failure.h"
#include "sim/pages/plan_page.h"
#include "sim/shown/headline.h"
#include "sim/shown/plan_text.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {
int plan_command(int argc, char** argv) {
  Arguments args(
      "plan",
      "Checks a scenario's layout and prints its pipeline stages: their ranks and layers, time and "
      "memory, and why layers are split into stages as they are.",
      "SCENARIO",
      "  polyphony plan scenarios/rehearse_8.json --report plan.html\n  polyphony plan "
      "scenarios/rehearse_8.json --resolved   every default spelled out\n  polyphony plan "
      "scenarios/rehearse_8.json --set layout.balance=unaware   as if everything were trained\n  "
      "polyphony plan scenarios/rehearse_8.json --stages 8   how many stages for each module?\n  "
      "polyphony plan scenarios/rehearse_8.json --set layout.language.pp=3 --set "
      "layout.language.ranks=3   what if?\n  polyphony plan scenarios/tiny_colocated.json "
      "--segments   run encoders in parts between the language module's microbatches?");
  args.add()("scenario", "scenario file", cxxopts::value<std::string>())(
      "resolved", "print the scenario with every default and derived value written out")(
      "stages",
      "instead divide the ranks into this many pipeline stages and assign them to the modules "
      "(non-colocated); printed twice: balanced by forward and backward times, and by forward "
      "times alone, as if nothing were frozen",
      cxxopts::value<int>())(
      "segments",
      "instead choose, for planner dip (arXiv 2504.14145), how many virtual stages each module has "
      "and how its microbatches are divided, with all modules on the same ranks; --format json "
      "prints the layout")("report", "also draw the stages as one HTML page to a file",
                           cxxopts::value<std::string>());
  args.add_profile("hardware profile to split layers into stages");
  args.add_overrides();
  args.add_phase();
  args.positional({"scenario"});
  if (args.parse(argc, argv)) return 0;
  args.check_outputs({"report"});
  const std::vector<Override> overrides = args.overrides();
  const Scenario scenario = open_scenario(args, overrides);
  const HardwareProfile profile = load_profile(scenario, args.profile(), overrides);
  if (args.has("resolved")) {
    std::cout << resolved_text(scenario) << "\n";
    return 0;
  }
  if (args.has("stages")) {
    const auto divided = answer_joint(scenario, profile, args.integer("stages"));
    if (const auto* no = std::get_if<Infeasible>(&divided))
      throw NoAnswer(ExitCode::infeasible, "--stages", "", no->reason);
    const auto& joint = std::get<JointAnswer>(divided);
    std::cout << (args.json() ? to_json(joint).dump(2) + "\n"
                              : headline(scenario, profile) + joint_text(joint));
    return 0;
  }
  if (args.has("segments")) {
    const auto cut = answer_segments(scenario, profile);
    if (const auto* no = std::get_if<Infeasible>(&cut))
      throw NoAnswer(ExitCode::infeasible, "--segments", "", no->reason);
    const auto& segments = std::get<SegmentsAnswer>(cut);
    std::cout << (args.json() ? to_json(segments).dump(2) + "\n"
                              : headline(scenario, profile) + segments_text(segments));
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
      throw InputError(scenario.file, "/layout", "is missing: there is nothing to draw",
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
  std::cout << headline(scenario, profile) << "\n" << table.text();
  if (!answer.program) {
    std::cout << "\nThe scenario has no layout; `polyphony sweep " << scenario.file
              << "` finds one.\n";
    return 0;
  }
  std::cout << "\n"
            << paragraph(layout_words(scenario.model, require_layout(scenario), scenario.cluster))
            << "\n"
            << stages_text(answer) << "\n";
  for (const PlannedSplit& split : answer.splits)
    std::cout << split_text(split, answer.device_memory) << "\n";
  const auto print_lines = [](const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) std::cout << paragraph(line);
    std::cout << "\n";
  };
  if (answer.order) print_lines(order_text(*answer.order));
  if (answer.work) print_lines(work_text(*answer.work, answer.global_batch));
  std::cout << "Program of one step: "
            << counted(static_cast<std::int64_t>(answer.program->ops), "op", "ops") << ", "
            << counted(static_cast<std::int64_t>(answer.program->messages), "message", "messages")
            << ", verified.\n";
  if (!answer.simulation_only.empty())
    std::cout << paragraph("Simulation only: " + answer.simulation_only);
  return 0;
}

}  // namespace polyphony::sim
