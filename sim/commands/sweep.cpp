// polyphony sweep: searches the legal layouts of a scenario and ranks the best.
#include <iostream>

#include "shared/files/free_memory.h"
#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/cli/saved_layouts.h"
#include "sim/cli/sweep_answer.h"
#include "sim/cli/sweep_options.h"
#include "sim/cli/variations.h"
#include "sim/commands/vary.h"
#include "sim/console/console.h"
#include "sim/console/signal_counter.h"
#include "sim/shown/phase_plan_text.h"
#include "sim/sweep/written_layout.h"

namespace polyphony::sim {
namespace {

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
  if (args.has("shard")) return {{}, "a part is not compared", ""};
  const std::string path = args.require("scenario");
  try {
    Scenario scenario = read_scenario_file(path, goal_overrides(args), phase);
    read_samples(scenario);
    const GoalSweep result = search_shown(args, scenario, load_profile(scenario, args.profile()),
                                          "sweep, as written", false);
    if (result.stopped) return {{}, "stopped before all was done", ""};
    if (result.reached.empty()) return {{}, "no layout fits", ""};
    const Candidate& best = result.candidate(result.reached.front());
    return {best.figures, "", best.text};
  } catch (const InputError& error) {
    return {{}, error.what(), ""};
  }
}

// The changes that options make to the scenario: --set, and those of the goal.
std::vector<Override> all_overrides(const Arguments& args) {
  std::vector<Override> all = goal_overrides(args);
  for (const Override& override : args.overrides()) all.push_back(override);
  return all;
}

std::string page_title(const Scenario& scenario, const std::vector<Override>& overrides) {
  std::string title = scenario.file;
  for (const Override& override : overrides) title += "  " + override.text;
  return title;
}

// Searches a scenario, or the phase `phase`, and prints the answer unless it is asked for as JSON.
SweepAnswer answer_shown(const Arguments& args, const Scenario& written, const std::string& phase,
                         const std::string& label) {
  const HardwareProfile profile = load_profile(written, args.profile(), all_overrides(args));
  return answer_sweep(args, written, profile, label, [&]() -> std::optional<Unchanged> {
    if (args.overrides().empty() || args.csv()) return std::nullopt;
    return best_unchanged(args, phase);
  });
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
    const SweepAnswer answered =
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
  if (args.has("for")) parse_target(args.text("for"));
  // One counter for all questions of this command: an interrupt of the first ends them all.
  const SignalCounter interrupts({SIGINT}, SignalCounter::Second::ends);
  if (all_phases) return sweep_phases(args);
  if (args.has("vary")) {
    const bool layouts = varies_layout(args.repeated("vary"));
    return vary(args, args.require("scenario"), args.repeated("vary"), goal_overrides(args),
                [&](const Scenario& scenario, const HardwareProfile& profile) {
                  return layouts ? layout_shown(args, scenario, profile)
                                 : search_shown(args, scenario, profile, "sweep");
                });
  }
  const SweepAnswer answered =
      answer_shown(args, open_scenario(args, all_overrides(args)), args.phase(), "sweep");
  const VariantSweep& best = answered.found.best();
  return finish_sweep(args, answered, page_title(best.scenario, args.overrides()),
                      [&] { save_layouts(args, best.scenario, answered.profile, best.sweep); });
}

}  // namespace polyphony::sim
