// polyphony sweep: which layout?
#include <cmath>
#include <filesystem>
#include <iostream>
#include <set>

#include "shared/scenario/scenario_json.h"
#include "shared/search/balanced_plan.h"
#include "sim/answers/answers_json.h"
#include "sim/commands/command.h"
#include "sim/commands/console.h"
#include "sim/commands/free_memory.h"
#include "sim/commands/journal.h"
#include "sim/commands/signal_counter.h"
#include "sim/commands/vary.h"
#include "sim/commands/what_if.h"

namespace polyphony::sim {
namespace {

std::string count(double number) { return count_text(static_cast<std::int64_t>(number)); }

// "-27% (-31 to -22)": of the baseline's step.
std::string gain_text(const Candidate& c, const Sweep& result, const HardwareProfile& profile) {
  if (result.baselines.empty()) return "";
  const Candidate& baseline = result.baselines.front().candidate;
  const double ratio = c.figures.step / baseline.figures.step - 1;
  std::string text = (ratio > 0 ? "+" : "") + percent_text(ratio, 0);
  if (!c.belief || !baseline.belief || c.layout == baseline.layout) return text;
  const Difference gain = compare_beliefs(*baseline.belief, *c.belief,
                                          layout_distance(baseline.layout, c.layout), profile);
  constexpr double kNinety = 1.645;  // deviations of a normal: 5 % to either side
  const auto end = [&](double sign) {
    const double at = std::exp(gain.logarithm + sign * kNinety * gain.deviation) - 1;
    return (at > 0 ? "+" : "") + number_text(100 * at, 0);
  };
  return text + " (" + end(-1) + " to " + end(1) + ")";
}

// Refusals in one line; every reason with `details`.
void print_counts(const Sweep& result, bool details) {
  std::cout << count(result.combinations)
            << " combinations: " << count(static_cast<double>(result.legal))
            << " looked at one by one, " << count(static_cast<double>(result.too_large))
            << " of them too large, " << count(static_cast<double>(result.beaten))
            << " ruled out by their bound; " << count(static_cast<double>(result.estimated))
            << " estimated, " << count(static_cast<double>(result.simulated)) << " simulated\n";
  std::int64_t refused = 0;
  for (const Rejection& r : result.rejected) refused += r.count;
  if (refused > 0 && !details)
    std::cout << "not legal: " << count(static_cast<double>(refused)) << ", for "
              << counted(static_cast<std::int64_t>(result.rejected.size()), "reason", "reasons")
              << " (--details lists them)\n";
  if (details)
    for (const Rejection& r : result.rejected)
      std::cout << "  " << r.count << "x " << name(r.placement) << ": " << r.example << "\n";
  if (result.too_large && (details || result.ranked.empty()))
    std::cout << "  does not fit, nearest: " << result.smallest_misfit.text << ": "
              << result.smallest_misfit.bound.footprint.worst << " needs "
              << bytes_text(result.smallest_misfit.bound.footprint.memory) << "\n";
  if (!result.not_runnable.empty())
    std::cout << "  simulation only: " << result.not_runnable << "\n";
  for (const std::string& failure : result.failed) std::cout << "  FAILED " << failure << "\n";
}

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

// What a person sees first of it: how the ranks are divided, and the language module's grid.
std::string shape_of(const Model& model, const Layout& layout) {
  std::string shape = name(layout.placement);
  for (const ModuleLayout& grid : layout.modules) shape += " " + std::to_string(grid.ranks);
  const ModuleLayout& grid = layout.modules[language_module(model).value];
  for (const int size : {grid.tp, grid.cp, grid.pp, grid.vpp, grid.ep})
    shape += " " + std::to_string(size);
  return shape;
}

// Rows of at most 100 columns, but for layouts that need more.
void print_ranking(const Scenario& scenario, const HardwareProfile& profile, const Sweep& result,
                   const Arguments& args) {
  const bool wide = args.has("wide");
  const auto words = [&](const Candidate& c) {
    return wide ? c.text : brief(scenario.model, c.layout);
  };
  const std::string against = result.baselines.empty() ? "" : "vs " + result.baselines.front().name;
  std::cout << "\n";
  Table table({"#", "step", against, "memory", "layout"});
  const auto most = static_cast<std::size_t>(std::max(1, args.integer("top")));
  std::size_t shown = 0;
  const auto add = [&](const std::string& place, const Candidate& c) {
    table.add({place, (c.simulated ? "" : "~") + seconds_text(c.figures.step),
               gain_text(c, result, profile), bytes_text(c.figures.peak_memory), words(c)});
  };
  // The best of each shape, and of each placement; near relatives of theirs are left to --all.
  std::set<std::string> shapes;
  std::set<Placement> placements;
  for (std::size_t i = 0; i < result.ranked.size(); ++i) {
    const Candidate& c = result.ranked[i];
    const bool first = placements.insert(c.layout.placement).second;
    const bool another =
        args.has("all") || shapes.insert(shape_of(scenario.model, c.layout)).second;
    if ((another && shown < most) || first) {
      add(std::to_string(i + 1) + (c.tied && result.tied > 1 ? "=" : ""), c);
      ++shown;
    }
  }
  for (const SetBeside& baseline : result.baselines) add("-", baseline.candidate);
  std::cout << table.text();
  for (std::size_t i = 0; i < result.baselines.size(); ++i)
    std::cout << (i ? ", then " : "-: ") << result.baselines[i].name
              << (i + 1 == result.baselines.size() ? "; ~: estimated; *: own split; " : "");
  std::cout << "±" << percent_text(profile.step_error, 0) << " by " << describe(profile) << "\n";
  if (result.tied > 1)
    std::cout << result.tied << " layouts are tied (=): what the profile does not know could turn "
              << "their order round; simplest: " << result.simplest + 1 << "\n";
  for (const auto& [placement, gap] : result.gaps)
    std::cout << name(placement)
              << (gap > 0
                      ? ": a layout not looked at could be up to " + percent_text(gap) + " faster"
                      : ": no combination of the lists has a smaller estimate")
              << "\n";
  for (const std::string& line : result.why) std::cout << line << "\n";
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

Sweep sweep_shown(const Arguments& args, const Scenario& scenario, const HardwareProfile& profile,
                  const std::string& label) {
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
  return sweep(scenario, profile, options);
}

// The best layout of the scenario as it is written: another one, perhaps; once stopped, not asked.
Unchanged best_unchanged(const Arguments& args) {
  if (SignalCounter::seen() > 0) return {{}, "stopped before it was asked for", ""};
  const std::string path = args.require("scenario");
  try {
    Scenario scenario = read_scenario_file(path);
    read_samples(scenario);
    const Sweep result =
        sweep_shown(args, scenario, load_profile(scenario, args.profile()), "sweep, as written");
    if (result.stopped) return {{}, "stopped before all was done", ""};
    if (result.ranked.empty()) return {{}, "no layout fits", ""};
    const Candidate& best = result.ranked.front();
    return {best.figures, "", best.text};
  } catch (const InputError& error) {
    return {{}, error.what(), ""};
  }
}

}  // namespace

namespace {

int exit_code(const Sweep& result) {
  if (result.stopped) return static_cast<int>(ExitCode::failed);
  return static_cast<int>(result.ranked.empty() ? ExitCode::infeasible : ExitCode::ok);
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
      "written");
  args.add()("scenario", "scenario file with a search", cxxopts::value<std::string>())(
      "jobs", "worker processes; 0: one per core", cxxopts::value<int>()->default_value("0"))(
      "top", "rows to print", cxxopts::value<int>()->default_value("12"))(
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
      "vary", "ask for each of several values: PATH=A,B,C or PATH=A..B (doubling); repeatable",
      cxxopts::value<std::vector<std::string>>(), "PATH=VALUES")(
      "json-out", "also write the answer as JSON to a file", cxxopts::value<std::string>())(
      "save", "folder for a scenario of the best layout of each placement",
      cxxopts::value<std::string>());
  args.add_profile();
  args.add_overrides();
  args.positional({"scenario"});
  if (args.parse(argc, argv)) return 0;
  // One for all questions that are asked: who stops the first wants no second.
  const SignalCounter interrupts({SIGINT}, SignalCounter::Second::ends);
  if (args.has("vary"))
    return vary(args, args.require("scenario"), args.repeated("vary"),
                [&](const Scenario& scenario, const HardwareProfile& profile) {
                  return sweep_shown(args, scenario, profile, "sweep");
                });
  const std::vector<Override> overrides = args.overrides();
  const Scenario scenario = load_scenario(args.require("scenario"), overrides);
  const HardwareProfile profile = load_profile(scenario, args.profile(), overrides);
  if (args.has("save-rank")) args.require("out");  // before the work, not after it
  const Sweep result = sweep_shown(args, scenario, profile, "sweep");
  std::optional<WhatIf> what_if;
  if (!overrides.empty()) what_if = {texts_of(overrides), best_unchanged(args), {}};
  if (what_if && !result.ranked.empty()) what_if->changed = result.ranked.front().figures;
  if (args.has("save-rank")) save_rank(scenario, profile, result, args);
  if (args.has("save")) save(scenario, profile, result, args.text("save"));
  nlohmann::json answer = to_json(result, scenario.model);
  if (what_if && !result.ranked.empty()) answer.update(to_json(*what_if));
  if (args.has("json-out")) write_file(args.text("json-out"), answer.dump(2) + "\n");
  if (args.json()) {
    std::cout << answer.dump(2) << "\n";
    return exit_code(result);
  }
  print_counts(result, args.has("details"));
  if (result.ranked.empty()) {
    print_notes(scenario, result.notes);
    if (!result.stopped) std::cerr << scenario.file << ": no layout fits; the reasons are above\n";
    return exit_code(result);
  }
  print_notes(scenario, result.notes);
  print_ranking(scenario, profile, result, args);
  if (what_if) {
    std::cout << "\n" << side_by_side(*what_if);
    if (what_if->unchanged.figures)
      std::cout << "best as written: " << what_if->unchanged.layout << "\n";
  }
  return exit_code(result);
}

}  // namespace polyphony::sim
