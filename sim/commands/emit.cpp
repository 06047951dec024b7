// polyphony emit: a layout as another framework's launch files.
#include <filesystem>
#include <iostream>

#include "shared/check/check.h"
#include "shared/files/whole.h"
#include "shared/scenario/typical_batch.h"
#include "shared/text/figure_text.h"
#include "shared/text/json_form.h"
#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/cli/saved_layouts.h"
#include "sim/cli/sweep_answer.h"
#include "sim/cli/sweep_options.h"
#include "sim/commands/commands.h"
#include "sim/console/console.h"
#include "sim/frameworks/emit_answer.h"
#include "sim/frameworks/target_change.h"
#include "sim/shown/headline.h"
#include "sim/sweep/written_layout.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {
namespace {

// The scenario with the layout that is asked for: its own, or a row of a search.
Scenario picked(const Arguments& args, Scenario scenario, const HardwareProfile& profile) {
  if (!args.has("pick")) {
    if (!scenario.layout)
      throw InputError(
          scenario.file, "/layout", "is missing: the scenario asks for a search",
          "--pick 1 searches and takes the best row; polyphony sweep --save-row saves one");
    return scenario;
  }
  const int row = args.integer("pick");
  if (row < 1)
    throw InputError("--pick", "", "must be at least 1 (got " + args.given("pick") + ")",
                     "rows are counted from 1");
  const GoalSweep found = search_shown(args, scenario, profile, "emit");
  const VariantSweep& best = found.best();
  return with_layout_of(row_of(best.sweep, row, "--pick"), best.scenario, profile);
}

void expect(const Scenario& scenario, const HardwareProfile& profile, EmitAnswer& answer) {
  std::variant<StepAnswer, Infeasible> predicted = answer_step(
      scenario, *scenario.layout, typical_batch(scenario), profile, {.fold_large = true});
  if (const auto* refused = std::get_if<Infeasible>(&predicted))
    throw NoAnswer(ExitCode::infeasible, scenario.file, "/layout", refused->reason);
  const StepAnswer& step = std::get<StepAnswer>(predicted);
  answer.step = step.figures.step;
  const SecondsInterval bounds = interval(step.belief);
  answer.low = bounds.low;
  answer.high = bounds.high;
  answer.memory = step.figures.needed_memory();
  answer.room = scenario.cluster.device.memory;
  answer.tokens_per_second = step.figures.tokens_per_second_per_rank;
  answer.megatron = step.megatron_half;
  answer.torchtitan_mfu = step.torchtitan_mfu;
  if (!step.out_of_memory.empty())
    answer.emitted.notes.push_back("does not fit: " + step.out_of_memory);
}

void print_emitted(const EmitAnswer& answer) {
  std::string text = paragraph(answer.layout) + "step " + seconds_text(answer.step) + " (" +
                     seconds_text(answer.low) + " to " + seconds_text(answer.high) + "), " +
                     count_text(static_cast<std::int64_t>(answer.tokens_per_second)) +
                     " tokens/s/GPU, fullest GPU " + bytes_text(answer.memory) + "\n\n";
  for (const NamedText& file : answer.emitted.files) text += answer.folder + "/" + file.path + "\n";
  for (const std::string& note : answer.emitted.notes) text += paragraph("Note: " + note);
  std::cout << text;
  if (!answer.emitted.start.empty())
    std::cout << "\nStart: " << answer.emitted.start << "    (in " << answer.folder << ")\n";
}

// The settings that older versions of the frameworks do not have.
void show_versions(const Arguments& args) {
  if (args.json()) {
    nlohmann::json known = nlohmann::json::object(), rows = nlohmann::json::array();
    for (const std::string& framework : enum_names<Target>()) {
      const KnownVersions versions = known_versions(enum_named<Target>(framework));
      known[framework] = {{"oldest", version_text(versions.oldest)},
                          {"newest", version_text(versions.newest)}};
    }
    for (const SettingSince& of : settings_since())
      rows.push_back({{"framework", name(of.target)},
                      {"since", version_text(of.since)},
                      {"setting", of.setting},
                      {"value", of.value ? nlohmann::json::parse(of.value) : nlohmann::json()},
                      {"without", name(of.without)},
                      {"what", of.what},
                      {"source", of.source}});
    std::cout << nlohmann::json{{"versions", known}, {"settings", rows}}.dump(2) << "\n";
    return;
  }
  for (const std::string& framework : enum_names<Target>()) {
    const Target target = enum_named<Target>(framework);
    const KnownVersions known = known_versions(target);
    std::cout << framework << ", " << version_text(known.oldest) << " to "
              << version_text(known.newest) << "\n";
    for (const SettingSince& of : settings_since()) {
      if (of.target != target) continue;
      std::string value = of.value ? std::string(" = ") + of.value : "";
      std::cout << "  from " << version_text(of.since) << ": " << of.setting << value << "\n"
                << "    "
                << wrapped(
                       std::string(of.what) + "; for an older version it is " +
                           (of.without == WithoutSetting::refused   ? "refused"
                            : of.without == WithoutSetting::omitted ? "left out"
                                                                    : "written in another form") +
                           ". Source: " + of.source,
                       screen_columns() - 4, 4)
                << "\n";
    }
  }
}

}  // namespace

int emit_command(int argc, char** argv) {
  Arguments args(
      "emit",
      "Writes a layout as the launch files of another framework: its arguments or configuration, "
      "scripts for torchrun "
      "and Slurm, and a page with the step time, memory and throughput to expect. What the "
      "framework cannot run is "
      "refused by name (exit code 3).",
      "SCENARIO --for FRAMEWORK --out DIR",
      "  polyphony emit best.json --for megatron-lm --out run/\n"
      "  polyphony emit q.json --pick 1 --for megatron-bridge --out run/    searches, and takes "
      "the best row\n"
      "  polyphony sweep q.json --save-row 2 --out best.json                a row of a search as a "
      "scenario\n"
      "  polyphony import run/run.sh --gpus 8x8xH100                        the way back\n"
      "  polyphony emit --versions                                          what which version of "
      "a framework can");
  args.add()("scenario", "scenario with a layout, or, with --pick, with a search",
             cxxopts::value<std::string>(),
             "FILE")("for",
                     "megatron-lm, megatron-bridge, torchtitan, ms-swift; of a version of it: "
                     "torchtitan@0.2.2",
                     cxxopts::value<std::string>(), "FRAMEWORK")(
      "versions", "list which settings came with which version of a framework, and stop")(
      "out", "folder of the files; made if it is missing", cxxopts::value<std::string>(), "DIR")(
      "force", "replace files that are in the folder already")(
      "pick", "search first, and take this row of the answer", cxxopts::value<int>(), "ROW");
  args.positional({"scenario"});
  add_budget_options(args);
  args.add_overrides();
  args.add_phase();
  args.add_profile();
  if (args.parse(argc, argv)) return 0;
  if (args.has("versions")) {
    show_versions(args);
    return 0;
  }
  const TargetVersion target = parse_target(args.require("for"));
  const std::string folder = args.require("out");
  const Scenario scenario_given = open_scenario(args, args.overrides());
  const HardwareProfile profile = load_profile(scenario_given, args.profile(), args.overrides());
  Scenario scenario = picked(args, scenario_given, profile);
  const Layout& layout = require_layout(scenario);
  EmitAnswer answer;
  answer.emitted = emit_planned(scenario, layout, profile, target);
  answer.scenario = scenario.file;
  answer.layout = layout_words(scenario.model, layout, scenario.cluster);
  const QuestionWords words = question_words(scenario, profile);
  answer.model = words.model;
  answer.cluster = words.cluster;
  answer.data = words.data;
  if (answer.emitted.cannot.empty()) {
    expect(scenario, profile, answer);
    answer.emitted.files.push_back({"README.md", ""});
    answer.emitted.files.back().text = emit_page(answer);
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed)
      throw InputError(folder, "", "cannot be made: " + failed.message(),
                       "choose another folder for --out");
    for (const NamedText& file : answer.emitted.files) {
      const std::string path = folder + "/" + file.path;
      if (args.has("force") || !std::filesystem::exists(path) || read_file(path) == file.text)
        continue;
      throw InputError(path, "", "exists already, with another text",
                       "choose another folder for --out, or --force to replace its files");
    }
    for (const NamedText& file : answer.emitted.files)
      write_file(folder + "/" + file.path, file.text);
    answer.folder = folder;
  }
  if (args.json()) {
    std::cout << to_json(answer).dump(2) << "\n";
  } else if (answer.emitted.cannot.empty()) {
    print_emitted(answer);
  } else {
    std::cout << paragraph(answer.layout) << target_text(target) << " cannot run this layout:\n";
    for (const std::string& what : answer.emitted.cannot)
      std::cout << "  " << wrapped(what, screen_columns() - 2, 4) << "\n";
  }
  return static_cast<int>(answer.emitted.cannot.empty() ? ExitCode::ok : ExitCode::infeasible);
}

}  // namespace polyphony::sim
