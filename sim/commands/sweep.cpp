// polyphony sweep: searches the legal layouts of a scenario and ranks the best.
#include <algorithm>
#include <iostream>

#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/cli/journal.h"
#include "sim/cli/saved_layouts.h"
#include "sim/cli/sweep_options.h"
#include "sim/cli/variations.h"
#include "sim/cli/what_if.h"
#include "sim/commands/vary.h"
#include "sim/console/console.h"
#include "sim/console/free_memory.h"
#include "sim/console/signal_counter.h"
#include "sim/pages/sweep_page.h"
#include "sim/shown/goal_text.h"
#include "sim/shown/headline.h"
#include "sim/shown/sweep_csv.h"
#include "sim/shown/sweep_text.h"
#include "sim/sweep/written_layout.h"

namespace polyphony::sim {
namespace {

GoalSweep sweep_shown(const Arguments& args, const Scenario& scenario,
                      const HardwareProfile& profile, const std::string& label) {
  Progress progress(label);
  SweepOptions options = sweep_options(args);
  KnownAnswers known;
  std::optional<Journal> journal;
  if (args.has("journal"))
    journal.emplace(args.texts("journal"), question_digest(scenario, profile), known);
  options.stopped = [] { return SignalCounter::seen() > 0; };
  options.known = &known;
  options.progress = [&](double share, const std::string& what) { progress.show(share, what); };
  GoalSweep answer = sweep_for_goal(scenario, profile, options);
  if (answer.stopped)
    for (VariantSweep& of : answer.sweeps)
      of.sweep.notes.emplace_back(
          args.has("journal") ? "the same command with this --journal continues from here"
                              : "with --journal FILE the same command could continue from here");
  return answer;
}

// Predicts the scenario's own layout; nothing is searched.
GoalSweep layout_shown(const Arguments& args, const Scenario& scenario,
                       const HardwareProfile& profile) {
  if (!(scenario.goal == Goal{}))
    throw InputError(scenario.file, "/goal",
                     "--vary over layout fields ranks by step time only, it takes no goal",
                     "remove the goal, or vary something else");
  SweepOptions options;
  options.memory = free_memory();
  if (args.has("estimate")) options.predictor = Predictor::estimate;
  GoalSweep answer;
  answer.sweeps.push_back(
      {{}, scenario, scenario.cluster.device.memory, written_layout(scenario, profile, options)});
  answer.stopped = SignalCounter::seen() > 0;
  return answer;
}

// Searches the scenario without the changes of --set, for comparison. Not after an interrupt.
Unchanged best_unchanged(const Arguments& args) {
  if (SignalCounter::seen() > 0) return {{}, "stopped before it was searched", ""};
  const std::string path = args.require("scenario");
  try {
    Scenario scenario = read_scenario_file(path, goal_overrides(args));
    read_samples(scenario);
    const GoalSweep result =
        sweep_shown(args, scenario, load_profile(scenario, args.profile()), "sweep, as written");
    if (result.stopped) return {{}, "stopped before all was done", ""};
    if (result.reached.empty()) return {{}, "no layout fits", ""};
    const Candidate& best = result.candidate(result.reached.front());
    return {best.figures, "", best.text};
  } catch (const InputError& error) {
    return {{}, error.what(), ""};
  }
}

std::string page_title(const Scenario& scenario, const std::vector<Override>& overrides) {
  std::string title = scenario.file;
  for (const Override& override : overrides) title += "  " + override.text;
  return title;
}

void print(const GoalSweep& found, const Scenario& scenario, const HardwareProfile& profile,
           const QuestionWords& asked, const std::optional<WhatIf>& what_if,
           const Arguments& args) {
  const Sweep& result = found.best().sweep;
  std::cout << headline(asked);
  print_goal(found);
  print_counts(result, args.has("details"));
  print_notes(scenario, result.notes);
  if (result.ranked.empty()) {
    if (!result.stopped) std::cerr << scenario.file << ": no layout fits; the reasons are above\n";
    return;
  }
  print_ranking(scenario, profile, result,
                {static_cast<std::size_t>(std::max(1, args.integer("top"))), args.has("all"),
                 args.has("wide"), args.has("details")});
  if (!what_if) return;
  std::cout << "\n" << side_by_side(*what_if);
  if (what_if->unchanged.figures)
    std::cout << "best without the changes: " << what_if->unchanged.layout << "\n";
}

int exit_code(const GoalSweep& answer) {
  if (answer.stopped) return static_cast<int>(ExitCode::failed);
  return static_cast<int>(answer.reached.empty() ? ExitCode::infeasible : ExitCode::ok);
}

}  // namespace

int sweep_command(int argc, char** argv) {
  Arguments args(
      "sweep",
      "Searches for the fastest layout. Evaluates every legal one in closed form (its memory and a "
      "lower bound of its step time), estimates and simulates the most promising and ranks them. "
      "In a large search, of encoders with grids of their own only the few fastest grids are "
      "combined with every grid of the language module, and layouts near the best are tried. "
      "--details states how much faster an unseen layout could be.",
      "SCENARIO",
      "  polyphony sweep scenarios/vlm_12b_70b_h100.json\n"
      "  polyphony sweep scenarios/vlm_12b_70b_h100.json --journal sweep.jsonl --save-row 3 "
      "--out third.json\n"
      "  polyphony sweep scenarios/easy_vqa.json --runnable --save runs/best    scenarios to run\n"
      "  polyphony sweep scenarios/vlm_12b_70b_h100.json --set cluster.nic=100Gbps   what if? "
      "Compared with the scenario as written\n"
      "  polyphony sweep scenarios/vlm_12b_70b_h100.json --vary cluster.nic=100Gbps..800Gbps "
      "--report nic.html   where does the best layout change?\n"
      "  polyphony sweep scenarios/vlm_12b_70b_h100.json --objective days,dollars --nodes 16..64 "
      "--tokens 1e12   how many GPUs?");
  add_sweep_options(args);
  args.add_profile();
  args.add_overrides();
  args.add_csv();
  args.positional({"scenario"});
  if (args.parse(argc, argv)) return 0;
  args.check_outputs({"report", "json-out"});
  check_saved(args);
  // One counter for all questions of this command: an interrupt of the first ends them all.
  const SignalCounter interrupts({SIGINT}, SignalCounter::Second::ends);
  if (args.has("vary")) {
    const bool layouts = varies_layout(args.repeated("vary"));
    return vary(args, args.require("scenario"), args.repeated("vary"), goal_overrides(args),
                [&](const Scenario& scenario, const HardwareProfile& profile) {
                  return layouts ? layout_shown(args, scenario, profile)
                                 : sweep_shown(args, scenario, profile, "sweep");
                });
  }
  const std::vector<Override> overrides = args.overrides();
  std::vector<Override> all = goal_overrides(args);
  all.insert(all.end(), overrides.begin(), overrides.end());
  const Scenario written = open_scenario(args.require("scenario"), all);
  const HardwareProfile profile = load_profile(written, args.profile(), all);
  const GoalSweep found = sweep_shown(args, written, profile, "sweep");
  const Scenario& scenario = found.best().scenario;
  const Sweep& result = found.best().sweep;
  std::optional<WhatIf> what_if;
  if (!overrides.empty() && !args.csv()) what_if = {texts_of(overrides), best_unchanged(args), {}};
  if (what_if && !found.reached.empty())
    what_if->changed = found.candidate(found.reached.front()).figures;
  nlohmann::json answer = to_json(found);
  const QuestionWords asked = question_words(scenario, profile);
  answer["question"] = to_json(asked);
  if (what_if && !result.ranked.empty()) answer.update(to_json(*what_if));
  if (args.json())
    std::cout << answer.dump(2) << "\n";
  else if (args.csv())
    std::cout << csv_text(result, scenario.model);
  else
    print(found, scenario, profile, asked, what_if, args);
  std::cout.flush();
  const auto write_side_files = [&] {
    save_layouts(args, scenario, profile, result);
    if (args.has("json-out")) write_file(args.text("json-out"), answer.dump(2) + "\n");
    if (args.has("report")) {
      Searched shown = searched_of(result, scenario.model);
      shown.question = asked;
      write_file(args.text("report"),
                 traces::to_html(sweep_page(shown, page_title(scenario, overrides))));
    }
  };
  if (!args.json()) {
    write_side_files();
    return exit_code(found);
  }
  try {  // stdout has the answer: an error goes to stderr alone
    write_side_files();
  } catch (const InputError& error) {
    return report_failure(error, ExitCode::bad_input, error.what(), false);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return static_cast<int>(ExitCode::failed);
  }
  return exit_code(found);
}

}  // namespace polyphony::sim
