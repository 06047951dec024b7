// polyphony sweep: which layout?
#include <filesystem>
#include <iostream>
#include <set>

#include "shared/scenario/scenario_json.h"
#include "shared/search/balanced_plan.h"
#include "sim/answers/answers_json.h"
#include "sim/commands/command.h"
#include "sim/commands/console.h"
#include "sim/commands/free_memory.h"
#include "sim/commands/what_if.h"

namespace polyphony::sim {
namespace {

// "+1.2 s to +4.0 s".
std::string difference_text(const Candidate& c) {
  if (!c.difference) return "";
  const auto text = [](Seconds time) {
    return (time >= Seconds(0) ? "+" : "") + seconds_text(time);
  };
  return text(c.difference->seconds.low) + " to " + text(c.difference->seconds.high);
}

void print_rejected(const Sweep& result, std::size_t most) {
  std::size_t total = 0;
  for (const Rejection& r : result.rejected) total += static_cast<std::size_t>(r.count);
  const auto text = [](std::size_t n) { return count_text(static_cast<std::int64_t>(n)); };
  std::cout << counted(static_cast<std::int64_t>(result.listed + total), "combination",
                       "combinations")
            << ": " << text(total) << " not legal, " << text(result.too_large)
            << (result.too_large == 1 ? " does" : " do") << " not fit in memory, "
            << text(result.screened) << " ruled out by " << (result.screened == 1 ? "its" : "their")
            << " bound, "
            << (result.not_runnable ? text(result.not_runnable) + " simulation only, " : "")
            << result.ranked.size() << " simulated\n";
  for (std::size_t i = 0; i < std::min(most, result.rejected.size()); ++i)
    std::cout << "  " << result.rejected[i].count << "x " << name(result.rejected[i].placement)
              << ": " << result.rejected[i].example << "\n";
  if (result.rejected.size() > most)
    std::cout << "  ... and "
              << counted(static_cast<std::int64_t>(result.rejected.size() - most), "more reason",
                         "more reasons")
              << " (--format json lists them)\n";
  if (result.too_large)
    std::cout << "  does not fit, nearest: " << result.smallest_misfit.text << ": "
              << result.smallest_misfit.bound.footprint.worst << " needs "
              << bytes_text(result.smallest_misfit.bound.footprint.memory) << "\n";
  if (result.not_runnable)
    std::cout << "  simulation only: " << result.not_runnable_example << "\n";
  for (const std::string& failure : result.failed) std::cout << "  FAILED " << failure << "\n";
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
    Scenario chosen = scenario;
    chosen.layout = with_blocks(c.layout, balanced_plan(scenario, c.layout, profile));
    chosen.search.reset();
    const std::string path = folder + "/" + name(c.layout.placement) + ".json";
    write_file(path, movable_text(chosen, std::filesystem::current_path()));
    std::cerr << "wrote " << path << "\n";
  }
}

Sweep sweep_shown(const Arguments& args, const Scenario& scenario, const HardwareProfile& profile,
                  const std::string& label) {
  Progress progress(label);
  SweepOptions options;
  options.jobs = args.jobs();
  options.runnable = args.has("runnable");
  options.cores = cores_here();
  options.memory = free_memory();
  if (args.has("estimate")) options.predictor = Predictor::estimate;
  options.progress = [&](double share, const std::string& what) { progress.show(share, what); };
  return sweep(scenario, profile, options);
}

// The best layout of the scenario as it is written: another one, perhaps.
Unchanged best_unchanged(const Arguments& args) {
  const std::string path = args.require("scenario");
  try {
    Scenario scenario = read_scenario_file(path);
    read_samples(scenario);
    const Sweep result =
        sweep_shown(args, scenario, load_profile(scenario, args.profile()), "sweep, as written");
    if (result.ranked.empty()) return {{}, "no layout fits", ""};
    const Candidate& best = result.ranked.front();
    return {best.figures, "", best.text};
  } catch (const InputError& error) {
    return {{}, error.what(), ""};
  }
}

}  // namespace

int sweep_command(int argc, char** argv) {
  Arguments args(
      "sweep",
      "Which layout? Every legal one is screened, the promising ones are simulated and ranked.",
      "SCENARIO",
      "  polyphony sweep scenarios/vlm_12b_70b_h100.json\n  polyphony sweep "
      "scenarios/easy_vqa.json --runnable --save runs/best    scenarios to run\n  polyphony sweep "
      "scenarios/vlm_12b_70b_h100.json --set cluster.nic=100Gbps   what if? Beside the best as "
      "written");
  args.add()("scenario", "scenario file with a search", cxxopts::value<std::string>())(
      "jobs", "worker processes; 0: one per core", cxxopts::value<int>()->default_value("0"))(
      "top", "rows to print", cxxopts::value<int>()->default_value("12"))(
      "estimate", "longest path instead of SimGrid: faster, no contention")(
      "runnable", "only layouts that the executor can run")(
      "json-out", "also write the answer as JSON to a file", cxxopts::value<std::string>())(
      "save", "folder for a scenario of the best layout of each placement",
      cxxopts::value<std::string>());
  args.add_profile();
  args.add_overrides();
  args.positional({"scenario"});
  if (args.parse(argc, argv)) return 0;
  const std::vector<Override> overrides = args.overrides();
  const Scenario scenario = load_scenario(args.require("scenario"), overrides);
  const HardwareProfile profile = load_profile(scenario, args.profile(), overrides);
  const Sweep result = sweep_shown(args, scenario, profile, "sweep");
  std::optional<WhatIf> what_if;
  if (!overrides.empty()) what_if = {texts_of(overrides), best_unchanged(args), {}};
  if (what_if && !result.ranked.empty()) what_if->changed = result.ranked.front().figures;
  if (args.has("save")) save(scenario, profile, result, args.text("save"));
  nlohmann::json answer = to_json(result);
  if (what_if && !result.ranked.empty()) answer.update(to_json(*what_if));
  if (args.has("json-out")) write_file(args.text("json-out"), answer.dump(2) + "\n");
  if (args.json()) {
    std::cout << answer.dump(2) << "\n";
    return static_cast<int>(result.ranked.empty() ? ExitCode::infeasible : ExitCode::ok);
  }
  print_rejected(result, 6);
  if (result.ranked.empty()) {
    std::cerr << scenario.file << ": no layout fits; the reasons are above\n";
    return static_cast<int>(ExitCode::infeasible);
  }
  print_notes(scenario, result.notes);
  std::cout << "\nstep times are within ±" << percent_text(profile.step_error, 0) << " ("
            << describe(profile) << ": " << profile.source << ")\n\n";
  Table table({"#", "step", "from the best, 9 of 10", "beats it", "tokens/s/rank", "MFU",
               "worst memory", "stage", "layout"});
  for (std::size_t i = 0; i < std::min(result.ranked.size(),
                                       static_cast<std::size_t>(std::max(1, args.integer("top"))));
       ++i) {
    const Candidate& c = result.ranked[i];
    table.add({std::to_string(i + 1) + (c.tied && result.tied > 1 ? "=" : ""),
               seconds_text(c.figures.step), difference_text(c),
               c.difference ? percent_text(c.difference->second_wins, 0) : "",
               count_text(static_cast<std::int64_t>(c.figures.tokens_per_second_per_rank)),
               percent_text(c.figures.model_flops_utilization), bytes_text(c.figures.peak_memory),
               c.figures.worst_stage, c.text});
  }
  std::cout << table.text();
  if (result.tied > 1)
    std::cout << "\n"
              << result.tied << " layouts are tied (=): what the profile does not know could turn "
              << "their order round; simplest of them: " << result.simplest + 1 << ", "
              << result.ranked[result.simplest].text << "\n";
  for (const std::string& line : result.why) std::cout << line << "\n";
  if (what_if) {
    std::cout << "\n" << side_by_side(*what_if);
    if (what_if->unchanged.figures)
      std::cout << "best as written: " << what_if->unchanged.layout << "\n";
  }
  return 0;
}

}  // namespace polyphony::sim
