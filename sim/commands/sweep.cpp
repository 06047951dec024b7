// polyphony sweep: which layout?
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>

#include "shared/scenario_io/scenario_json.h"
#include "shared/split/balanced_plan.h"
#include "sim/answer_json/answers_json.h"
#include "sim/cli/command.h"
#include "sim/cli/journal.h"
#include "sim/cli/what_if.h"
#include "sim/commands/vary.h"
#include "sim/console/console.h"
#include "sim/console/free_memory.h"
#include "sim/console/signal_counter.h"
#include "sim/pages/sweep_page.h"
#include "sim/shown/goal_text.h"
#include "sim/shown/sweep_csv.h"
#include "sim/shown/sweep_text.h"
#include "sim/sweep/written_layout.h"

namespace polyphony::sim {
namespace {

void save_layout(const Scenario& scenario, const HardwareProfile& profile, const Candidate& c,
                 const std::string& path) {
  Scenario chosen = scenario;
  chosen.layout = with_blocks(c.layout, balanced_plan(scenario, c.layout, profile));
  chosen.search.reset();
  write_file(path, movable_text(chosen, std::filesystem::current_path()));
  std::cerr << "wrote " << path << "\n";
}

void save_rank(const Scenario& scenario, const HardwareProfile& profile, const Sweep& result,
               const Arguments& args) {
  const int rank = args.integer("save-rank");
  if (rank < 1 || static_cast<std::size_t>(rank) > result.ranked.size())
    throw InputError("--save-rank", "", "there is no row " + std::to_string(rank),
                     "1 to " + std::to_string(result.ranked.size()) + " are there");
  save_layout(scenario, profile, result.ranked[static_cast<std::size_t>(rank) - 1],
              args.require("out"));
}

// Best of each placement, as scenarios of their own.
void save(const Scenario& scenario, const HardwareProfile& profile, const Sweep& result,
          const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw InputError(folder, "", "cannot be made: " + failed.message(),
                     "choose another folder for --save");
  std::set<Placement> seen;
  for (const Candidate& c : result.ranked) {
    if (!seen.insert(c.layout.placement).second) continue;
    save_layout(scenario, profile, c, folder + "/" + name(c.layout.placement) + ".json");
  }
}

// --objective days,dollars --nodes 8..64 --tokens 1e12: the scenario's goal, for this question.
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
  return goal;
}

// "2/8": the second of eight parts.
Shards shard_of(const Arguments& args) {
  if (!args.has("shard")) return {};
  const std::string text = args.text("shard");
  Shards shards;
  int used = 0;
  if (std::sscanf(text.c_str(), "%d/%d%n", &shards.index, &shards.count, &used) != 2 ||
      static_cast<std::size_t>(used) != text.size() || shards.index < 1 ||
      shards.index > shards.count)
    throw InputError("--shard", "", "\"" + text + "\" is no part of a search",
                     "I/N, such as 2/8: the second of eight");
  if (!args.has("journal"))
    throw InputError("--shard", "", "its answers go nowhere",
                     "add --journal FILE, one for each part");
  --shards.index;
  return shards;
}

GoalSweep sweep_shown(const Arguments& args, const Scenario& scenario,
                      const HardwareProfile& profile, const std::string& label) {
  Progress progress(label);
  SweepOptions options;
  options.shard = shard_of(args);
  KnownAnswers known;
  std::optional<Journal> journal;
  if (args.has("journal"))
    journal.emplace(args.texts("journal"), question_digest(scenario, profile), known);
  options.jobs = args.jobs();
  options.runnable = args.has("runnable");
  options.effort = args.real("effort");
  if (!(options.effort > 0 && options.effort <= 1000))
    throw InputError("--effort", "", "is out of range", "a factor above 0, up to 1000");
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
          args.has("journal") ? "asked again with this --journal, it goes on from here"
                              : "with --journal FILE it could be asked again to go on from here");
  return answer;
}

// The scenario's layout alone, nothing searched.
GoalSweep layout_shown(const Arguments& args, const Scenario& scenario,
                       const HardwareProfile& profile) {
  if (!(scenario.goal == Goal{}))
    throw InputError(scenario.file, "/goal", "of layouts that --vary names, steps are ranked",
                     "leave the goal out, or vary something else");
  SweepOptions options;
  options.memory = free_memory();
  if (args.has("estimate")) options.predictor = Predictor::estimate;
  GoalSweep answer;
  answer.sweeps.push_back(
      {{}, scenario, scenario.cluster.device.memory, written_layout(scenario, profile, options)});
  answer.stopped = SignalCounter::seen() > 0;
  return answer;
}

// The best layout of the scenario as it is written: another one, perhaps; once stopped, not asked.
Unchanged best_unchanged(const Arguments& args) {
  if (SignalCounter::seen() > 0) return {{}, "stopped before it was asked for", ""};
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

int exit_code(const GoalSweep& answer) {
  if (answer.stopped) return static_cast<int>(ExitCode::failed);
  return static_cast<int>(answer.reached.empty() ? ExitCode::infeasible : ExitCode::ok);
}

}  // namespace

int sweep_command(int argc, char** argv) {
  Arguments args(
      "sweep",
      "Which layout? Every legal one is screened, the promising ones are simulated and ranked.",
      "SCENARIO",
      "  polyphony sweep scenarios/vlm_12b_70b_h100.json\n  polyphony sweep "
      "scenarios/vlm_12b_70b_h100.json --journal sweep.jsonl --save-rank 3 --out third.json\n  "
      "polyphony sweep "
      "scenarios/easy_vqa.json --runnable --save runs/best    scenarios to run\n  polyphony sweep "
      "scenarios/vlm_12b_70b_h100.json --set cluster.nic=100Gbps   what if? Beside the best as "
      "written\n  polyphony sweep scenarios/vlm_12b_70b_h100.json --vary "
      "cluster.nic=100Gbps..800Gbps --report nic.html   where does the best layout change?\n  "
      "polyphony sweep scenarios/vlm_12b_70b_h100.json --objective days,dollars --nodes 16..64 "
      "--tokens 1e12   how many GPUs?");
  args.add()("scenario", "scenario file with a search", cxxopts::value<std::string>())(
      "jobs", "worker processes; 0: one per core", cxxopts::value<int>()->default_value("0"))(
      "top", "rows to print", cxxopts::value<int>()->default_value("12"))(
      "all", "near relatives of a row too")(
      "estimate", "longest path instead of SimGrid: faster, no contention")(
      "runnable", "only layouts that the executor can run")(
      "effort", "of a search that cannot look at everything: 2 is twice the work",
      cxxopts::value<double>()->default_value("1"))(
      "details", "every reason why combinations are not legal")("wide", "layouts in full")(
      "journal",
      "file that keeps what is worked out: a sweep that was killed or is asked again goes "
      "on from it; more files, after commas, are read",
      cxxopts::value<std::vector<std::string>>())(
      "shard", "I/N: the I-th of N parts, for job arrays; then once more with all journals",
      cxxopts::value<std::string>())("save-rank", "number of a row, to save as a scenario: --out",
                                     cxxopts::value<int>())("out", "file for --save-rank",
                                                            cxxopts::value<std::string>())(
      "objective",
      "what is best: step, tokens_per_gpu, days, dollars or p95; of two (days,dollars; "
      "step,memory) the Pareto front",
      cxxopts::value<std::vector<std::string>>())(
      "nodes", "how many may be taken: 8,16,48 or 8..64 (doubling)", cxxopts::value<std::string>())(
      "tokens", "language tokens to train on, of days and dollars: 1e12",
      cxxopts::value<std::string>())(
      "vary",
      "ask for each of several values: PATH=A,B,C or PATH=A..B (doubling); repeatable. Where a "
      "PATH "
      "is the layout's, that layout is not searched but simulated with each: "
      "layout.planner=none,entrain,dip",
      cxxopts::value<std::vector<std::string>>(), "PATH=VALUES")(
      "report", "also write the answer as one HTML page to a file", cxxopts::value<std::string>())(
      "json-out", "also write the answer as JSON to a file", cxxopts::value<std::string>())(
      "save", "folder for a scenario of the best layout of each placement",
      cxxopts::value<std::string>());
  args.add_profile();
  args.add_overrides();
  args.add_csv();
  args.positional({"scenario"});
  if (args.parse(argc, argv)) return 0;
  // One for all questions that are asked: who stops the first wants no second.
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
  const Scenario written = load_scenario(args.require("scenario"), all);
  const HardwareProfile profile = load_profile(written, args.profile(), all);
  if (args.has("save-rank")) args.require("out");  // before the work, not after it
  const GoalSweep found = sweep_shown(args, written, profile, "sweep");
  const Scenario& scenario = found.best().scenario;
  const Sweep& result = found.best().sweep;
  std::optional<WhatIf> what_if;
  if (!overrides.empty() && !args.csv()) what_if = {texts_of(overrides), best_unchanged(args), {}};
  if (what_if && !found.reached.empty())
    what_if->changed = found.candidate(found.reached.front()).figures;
  if (args.has("save-rank")) save_rank(scenario, profile, result, args);
  if (args.has("save")) save(scenario, profile, result, args.text("save"));
  nlohmann::json answer = to_json(found);
  if (what_if && !result.ranked.empty()) answer.update(to_json(*what_if));
  if (args.has("json-out")) write_file(args.text("json-out"), answer.dump(2) + "\n");
  if (args.has("report"))
    write_file(args.text("report"),
               traces::to_html(answer_page(answer, page_title(scenario, overrides))));
  if (args.json()) {
    std::cout << answer.dump(2) << "\n";
    return exit_code(found);
  }
  if (args.csv()) {
    std::cout << csv_text(result, scenario.model);
    return exit_code(found);
  }
  print_goal(found);
  print_counts(result, args.has("details"));
  if (result.ranked.empty()) {
    print_notes(scenario, result.notes);
    if (!result.stopped) std::cerr << scenario.file << ": no layout fits; the reasons are above\n";
    return exit_code(found);
  }
  print_notes(scenario, result.notes);
  print_ranking(scenario, profile, result,
                {static_cast<std::size_t>(std::max(1, args.integer("top"))), args.has("all"),
                 args.has("wide")});
  if (what_if) {
    std::cout << "\n" << side_by_side(*what_if);
    if (what_if->unchanged.figures)
      std::cout << "best as written: " << what_if->unchanged.layout << "\n";
  }
  return exit_code(found);
}

}  // namespace polyphony::sim
