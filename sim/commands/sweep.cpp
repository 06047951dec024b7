// polyphony sweep: searches the legal layouts of a scenario and ranks the best.
#include <algorithm>
#include <iostream>

#include "shared/files/free_memory.h"
#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/cli/journal.h"
#include "sim/cli/saved_layouts.h"
#include "sim/cli/sweep_options.h"
#include "sim/cli/variations.h"
#include "sim/cli/what_if.h"
#include "sim/commands/vary.h"
#include "sim/console/console.h"
#include "sim/console/signal_counter.h"
#include "sim/pages/sweep_page.h"
#include "sim/shown/goal_text.h"
#include "sim/shown/headline.h"
#include "sim/shown/phase_plan_text.h"
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

// Searches the scenario (or its phase) without the changes of --set, for comparison. Not after an
// interrupt.
Unchanged best_unchanged(const Arguments& args, const std::string& phase) {
  if (SignalCounter::seen() > 0) return {{}, "stopped before it was searched", ""};
  const std::string path = args.require("scenario");
  try {
    Scenario scenario = read_scenario_file(path, goal_overrides(args), phase);
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

// The changes that options make to the scenario: --set, and those of the goal.
std::vector<Override> all_overrides(const Arguments& args) {
  std::vector<Override> all = goal_overrides(args);
  for (const Override& override : args.overrides()) all.push_back(override);
  return all;
}

// One search and its answer.
struct Answered {
  GoalSweep found;
  HardwareProfile profile;
  QuestionWords asked;
  nlohmann::json json;
};

// Searches a scenario, or the phase `phase`, and prints the answer unless it is asked for as JSON.
Answered answer_shown(const Arguments& args, const Scenario& written, const std::string& phase,
                      const std::string& label) {
  const HardwareProfile profile = load_profile(written, args.profile(), all_overrides(args));
  Answered answered{sweep_shown(args, written, profile, label), profile, {}, {}};
  const GoalSweep& found = answered.found;
  const Scenario& scenario = found.best().scenario;
  const Sweep& result = found.best().sweep;
  std::optional<WhatIf> what_if;
  if (!args.overrides().empty() && !args.csv())
    what_if = {texts_of(args.overrides()), best_unchanged(args, phase), {}};
  if (what_if && !found.reached.empty())
    what_if->changed = found.candidate(found.reached.front()).figures;
  answered.asked = question_words(scenario, profile);
  answered.json = to_json(found);
  answered.json["question"] = to_json(answered.asked);
  if (what_if && !result.ranked.empty()) answered.json.update(to_json(*what_if));
  if (args.csv())
    std::cout << csv_text(result, scenario.model);
  else if (!args.json())
    print(found, scenario, profile, answered.asked, what_if, args);
  return answered;
}

// Refuses options of one search if all phases are searched. `first`: name of the first phase.
void check_phase_options(const Arguments& args, const std::string& first) {
  for (const char* option : {"vary", "save-row", "save-rank", "save", "report", "journal", "shard"})
    if (args.has(option))
      throw InputError("--" + std::string(option), "",
                       "is of one search, but the scenario has phases", "add --phase " + first);
  if (args.csv())
    throw InputError("--format csv", "", "has the rows of one search, but the scenario has phases",
                     "add --phase " + first);
}

// Searches every phase, and shows what all of them take together.
int sweep_phases(const Arguments& args) {
  std::vector<TrainingPhase> phases =
      read_phases_file(args.require("scenario"), all_overrides(args));
  PhasePlan plan;
  plan.expected = phases.size();
  std::vector<nlohmann::json> answers;
  bool stopped = false;
  for (std::size_t i = 0; i < phases.size() && !stopped; ++i) {
    const std::string title = "phase " + phases[i].name + " (" + std::to_string(i + 1) + " of " +
                              std::to_string(phases.size()) + ")";
    open_samples(phases[i].scenario);
    if (!args.json()) std::cout << (i > 0 ? "\n" : "") << title << "\n";
    const Answered answered =
        answer_shown(args, phases[i].scenario, phases[i].name, "sweep, " + title);
    plan.phases.push_back(phase_cost(phases[i].name, answered.found));
    answers.push_back(answered.json);
    stopped = answered.found.stopped;
    phases[i].scenario = {};  // its samples may be many
    std::cout.flush();
  }
  const nlohmann::json answer = to_json(plan, answers);
  if (args.json())
    std::cout << answer.dump(2) << "\n" << std::flush;
  else
    std::cout << phase_plan_text(plan) << std::flush;
  if (args.has("json-out")) write_file(args.text("json-out"), answer.dump(2) + "\n");
  if (stopped) return static_cast<int>(ExitCode::failed);
  return static_cast<int>(plan.complete() ? ExitCode::ok : ExitCode::infeasible);
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
      "In a large search, only the fastest encoder grids are combined with every grid of the "
      "language module; layouts near the best are tried afterwards. "
      "--details states how much faster an unseen layout could be.\n"
      "Of a scenario with phases it searches each, and adds what all take: days, GPU hours, cost.",
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
  args.add_phase();
  args.add_csv();
  args.positional({"scenario"});
  if (args.parse(argc, argv)) return 0;
  const std::vector<std::string> phases = phases_of_file(args.require("scenario"));
  const bool all_phases = !phases.empty() && !args.has("phase");
  if (all_phases) check_phase_options(args, phases.front());
  args.check_outputs({"report", "json-out"});
  check_saved(args);
  // One counter for all questions of this command: an interrupt of the first ends them all.
  const SignalCounter interrupts({SIGINT}, SignalCounter::Second::ends);
  if (all_phases) return sweep_phases(args);
  if (args.has("vary")) {
    const bool layouts = varies_layout(args.repeated("vary"));
    return vary(args, args.require("scenario"), args.repeated("vary"), goal_overrides(args),
                [&](const Scenario& scenario, const HardwareProfile& profile) {
                  return layouts ? layout_shown(args, scenario, profile)
                                 : sweep_shown(args, scenario, profile, "sweep");
                });
  }
  const std::vector<Override> overrides = args.overrides();
  const Answered answered =
      answer_shown(args, open_scenario(args, all_overrides(args)), args.phase(), "sweep");
  const GoalSweep& found = answered.found;
  const Scenario& scenario = found.best().scenario;
  const Sweep& result = found.best().sweep;
  const nlohmann::json& answer = answered.json;
  const HardwareProfile& profile = answered.profile;
  if (args.json()) std::cout << answer.dump(2) << "\n";
  std::cout.flush();
  const auto write_side_files = [&] {
    save_layouts(args, scenario, profile, result);
    if (args.has("json-out")) write_file(args.text("json-out"), answer.dump(2) + "\n");
    if (args.has("report")) {
      Searched shown = searched_of(result, scenario.model);
      shown.question = answered.asked;
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
