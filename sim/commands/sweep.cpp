// polyphony sweep: searches the legal layouts of a scenario and ranks the best.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>
#include <sstream>

#include "shared/scenario_io/scenario_json.h"
#include "shared/split/balanced_plan.h"
#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/cli/journal.h"
#include "sim/cli/variations.h"
#include "sim/cli/what_if.h"
#include "sim/commands/vary.h"
#include "sim/console/console.h"
#include "sim/console/free_memory.h"
#include "sim/console/signal_counter.h"
#include "sim/pages/sweep_page.h"
#include "sim/shown/goal_text.h"
#include "sim/shown/headline.h"
#include "sim/shown/profile_text.h"
#include "sim/shown/sweep_csv.h"
#include "sim/shown/sweep_text.h"
#include "sim/sweep/written_layout.h"

namespace polyphony::sim {
namespace {

void save_layout(const Scenario& scenario, const HardwareProfile& profile, const Candidate& c,
                 const std::string& path) {
  Scenario chosen = scenario;
  chosen.planner_costs = c.costs;
  store_planned(c.layout, balanced_plan(chosen, c.layout, profile), chosen);
  chosen.search.reset();
  write_file(path, movable_text(chosen, std::filesystem::current_path()));
  std::cerr << "wrote " << path << "\n";
}

void save_rank(const Scenario& scenario, const HardwareProfile& profile, const Sweep& result,
               const Arguments& args) {
  const int rank = args.integer("save-rank");
  if (static_cast<std::size_t>(rank) > result.ranked.size())
    throw InputError("--save-rank", "",
                     "row " + std::to_string(rank) + " does not exist: the answer has " +
                         counted(static_cast<std::int64_t>(result.ranked.size()), "row", "rows"),
                     result.ranked.empty() ? "nothing can be saved"
                                           : "1 to " + std::to_string(result.ranked.size()));
  save_layout(scenario, profile, result.ranked[static_cast<std::size_t>(rank) - 1],
              args.require("out"));
}

void make_folder(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw InputError(folder, "", "cannot be made: " + failed.message(),
                     "choose another folder for --save");
}

// Saves the best layout of each placement as a scenario of its own.
void save(const Scenario& scenario, const HardwareProfile& profile, const Sweep& result,
          const std::string& folder) {
  std::set<Placement> seen;
  for (const Candidate& c : result.ranked) {
    if (!seen.insert(c.layout.placement).second) continue;
    save_layout(scenario, profile, c, folder + "/" + name(c.layout.placement) + ".json");
  }
}

// Throws where a file that the answer will go to cannot be written: before the search, not after
// it.
void check_side_files(const Arguments& args) {
  if (args.has("save-rank")) {
    if (args.integer("save-rank") < 1)
      throw InputError("--save-rank", "",
                       "must be at least 1 (got " + args.given("save-rank") + ")",
                       "rows are counted from 1 to the number of rows of the answer");
    check_writable(args.require("out"));
  }
  args.check_outputs({"report", "json-out"});
  if (args.has("save")) {
    make_folder(args.text("save"));
    check_writable(args.text("save") + "/homogeneous.json");
  }
}

// "5%", "5 %" or "0.05": a share, as search.memory_margin has it.
std::string margin_of(const std::string& text) {
  std::size_t used = 0;
  double share = -1;
  try {
    share = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  std::string unit = text.substr(used);
  unit.erase(0, unit.find_first_not_of(' '));
  if (unit == "%") share /= 100;
  if (used == 0 || !(unit.empty() || unit == "%") || !(share >= 0 && share <= 0.9))
    throw InputError("--memory-margin", "", "\"" + text + "\" is not a share of a device's memory",
                     "0 to 0.9, or a percentage such as 5%");
  std::ostringstream number;
  number << share;
  return number.str();
}

// --objective days,dollars --nodes 8..64 --tokens 1e12 --memory-margin 5%: values of the scenario's
// goal and search, for this question.
std::vector<Override> goal_overrides(const Arguments& args) {
  std::vector<Override> goal;
  if (args.has("objective")) {
    std::string names;
    for (const std::string& each : args.texts("objective"))
      names += (names.empty() ? "\"" : ",\"") + each + "\"";
    goal.push_back(parse_override("goal.objective=[" + names + "]"));
  }
  if (args.has("nodes")) {
    std::string counts;
    for (const std::string& each : parse_variation("nodes=" + args.text("nodes")).values)
      counts += (counts.empty() ? "" : ",") + each;
    goal.push_back(parse_override("goal.nodes=[" + counts + "]"));
  }
  if (args.has("tokens")) goal.push_back(parse_override("goal.tokens=" + args.text("tokens")));
  if (args.has("memory-margin"))
    goal.push_back(parse_override("search.memory_margin=" + margin_of(args.text("memory-margin"))));
  return goal;
}

// "2/8": the second of eight parts.
SpacePart part_of(const Arguments& args) {
  if (!args.has("shard")) return {};
  const std::string text = args.text("shard");
  SpacePart part;
  int used = 0;
  if (std::sscanf(text.c_str(), "%d/%d%n", &part.index, &part.count, &used) != 2 ||
      static_cast<std::size_t>(used) != text.size() || part.index < 1 || part.index > part.count)
    throw InputError("--shard", "", "\"" + text + "\" is not of the form I/N with 1 <= I <= N",
                     "2/8 is the second of eight parts");
  if (!args.has("journal"))
    throw InputError("--shard", "", "needs --journal: answers of a part are kept there",
                     "add --journal FILE, one for each part");
  --part.index;
  return part;
}

GoalSweep sweep_shown(const Arguments& args, const Scenario& scenario,
                      const HardwareProfile& profile, const std::string& label) {
  Progress progress(label);
  SweepOptions options;
  options.part = part_of(args);
  KnownAnswers known;
  std::optional<Journal> journal;
  if (args.has("journal"))
    journal.emplace(args.texts("journal"), question_digest(scenario, profile), known);
  options.jobs = args.jobs();
  options.runnable = args.has("runnable");
  options.effort = args.real("effort");
  if (!(options.effort > 0 && options.effort <= 1000))
    throw InputError("--effort", "", "must be above 0 and at most 1000", "1 is the usual effort");
  options.cores = cores_here();
  options.memory = free_memory();
  if (args.has("estimate")) options.predictor = Predictor::estimate;
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
           const std::vector<std::string>& asked, const std::optional<WhatIf>& what_if,
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
      "Which layout? Checks every legal one by its memory and a lower bound of its step time, "
      "simulates the most promising and ranks them.",
      "SCENARIO",
      "  polyphony sweep scenarios/vlm_12b_70b_h100.json\n"
      "  polyphony sweep scenarios/vlm_12b_70b_h100.json --journal sweep.jsonl --save-rank 3 "
      "--out third.json\n"
      "  polyphony sweep scenarios/easy_vqa.json --runnable --save runs/best    scenarios to run\n"
      "  polyphony sweep scenarios/vlm_12b_70b_h100.json --set cluster.nic=100Gbps   what if? "
      "Compared with the scenario as written\n"
      "  polyphony sweep scenarios/vlm_12b_70b_h100.json --vary cluster.nic=100Gbps..800Gbps "
      "--report nic.html   where does the best layout change?\n"
      "  polyphony sweep scenarios/vlm_12b_70b_h100.json --objective days,dollars --nodes 16..64 "
      "--tokens 1e12   how many GPUs?");
  args.add()("scenario", "scenario file", cxxopts::value<std::string>())(
      "jobs", "threads; 0: one per core", cxxopts::value<int>()->default_value("0"))(
      "top", "rows to print", cxxopts::value<int>()->default_value("12"))(
      "all", "also rows that differ from an earlier one only in details")(
      "estimate", "estimate by the longest path instead of SimGrid: faster, without contention")(
      "runnable", "only layouts that `polyphony run` can train")(
      "memory-margin",
      "share of the device's memory that the best layout leaves free, such as 5%: fragmentation, "
      "NCCL buffers and workspaces are not modeled (default: search.memory_margin of the scenario, "
      "5%)",
      cxxopts::value<std::string>(), "SHARE")(
      "effort", "how long to search where not every layout can be checked: 2 is twice the work",
      cxxopts::value<double>()->default_value("1"))(
      "details",
      "also how many combinations were searched, why some are not legal, how much the search may "
      "have missed, and where the other placements lose time")(
      "wide", "layouts in the words of a scenario file")(
      "journal",
      "file that keeps what was predicted so far: the same sweep continues from it after an "
      "interrupt, and answers at once when repeated; further files after commas are read only",
      cxxopts::value<std::vector<std::string>>())(
      "shard",
      "I/N: search only the I-th of N parts, for job arrays; then run it without --shard and with "
      "the journals of all parts",
      cxxopts::value<std::string>())("save-rank", "row to save as a scenario in --out",
                                     cxxopts::value<int>())("out", "file for --save-rank",
                                                            cxxopts::value<std::string>())(
      "objective",
      "what the best layout is best at: step, tokens_per_gpu, days, dollars or p95; of two "
      "(days,dollars; step,memory) the Pareto front",
      cxxopts::value<std::vector<std::string>>())(
      "nodes", "how many nodes may be used: 8,16,48 or 8..64 (doubling)",
      cxxopts::value<std::string>())("tokens",
                                     "language tokens to train on, for days and dollars: 1e12",
                                     cxxopts::value<std::string>())(
      "vary",
      "search once for each of several values: PATH=A,B,C or PATH=A..B (doubling); repeatable. A "
      "PATH in the layout varies the scenario's own layout, without a search: "
      "layout.planner=none,entrain,dip",
      cxxopts::value<std::vector<std::string>>(),
      "PATH=VALUES")("report", "also write the answer as one HTML page to this file",
                     cxxopts::value<std::string>())(
      "json-out", "also write the answer as JSON to this file", cxxopts::value<std::string>())(
      "save", "folder for scenarios of the best layout of each placement",
      cxxopts::value<std::string>());
  args.add_profile();
  args.add_overrides();
  args.add_csv();
  args.positional({"scenario"});
  if (args.parse(argc, argv)) return 0;
  check_side_files(args);
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
  const std::vector<std::string> asked = headline_parts(scenario, profile);
  answer["question"] = {{"model", asked[0]},
                        {"cluster", asked[1]},
                        {"data", asked[2]},
                        {"software", asked[3]},
                        {"accuracy", footing_text(profile)}};
  if (what_if && !result.ranked.empty()) answer.update(to_json(*what_if));
  if (args.json())
    std::cout << answer.dump(2) << "\n";
  else if (args.csv())
    std::cout << csv_text(result, scenario.model);
  else
    print(found, scenario, profile, asked, what_if, args);
  std::cout.flush();
  const auto write_side_files = [&] {
    if (args.has("save-rank")) save_rank(scenario, profile, result, args);
    if (args.has("save")) save(scenario, profile, result, args.text("save"));
    if (args.has("json-out")) write_file(args.text("json-out"), answer.dump(2) + "\n");
    if (args.has("report"))
      write_file(args.text("report"),
                 traces::to_html(answer_page(answer, page_title(scenario, overrides))));
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
