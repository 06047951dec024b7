#include "sim/cli/sweep_options.h"

#include <cstdio>
#include <sstream>

#include "shared/files/free_memory.h"
#include "shared/goal/goal.h"
#include "shared/search/choices.h"
#include "sim/cli/variations.h"
#include "sim/frameworks/target_layouts.h"

namespace polyphony::sim {
namespace {

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

// "1T", "300B", "1e12": a number of tokens, as a scenario's goal has it.
std::string tokens_of(const std::string& text) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = text.substr(used);
  if (unit == "M") value *= 1e6;
  if (unit == "B") value *= 1e9;
  if (unit == "T") value *= 1e12;
  const bool known = unit.empty() || unit == "M" || unit == "B" || unit == "T";
  if (used == 0 || !known || !(value >= 1) || !(value <= 1e18))
    throw InputError("--tokens", "", "\"" + text + "\" is not a number of tokens",
                     "1e12, or with a unit: 300B, 1T");
  std::ostringstream number;
  number.precision(17);
  number << value;
  return number.str();
}

// Throws InputError, naming the option, if the text is not an objective.
void check_objective(const std::string& text) {
  std::string known;
  for (const Objective each : all_of<Objective>()) {
    if (text == name(each)) return;
    known += (known.empty() ? "" : ", ") + std::string(name(each));
  }
  throw InputError("--objective", "", "must be one or two of " + known + " (got \"" + text + "\")",
                   "for example --objective days,dollars");
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

}  // namespace

void add_budget_options(Arguments& args, const char* effort) {
  args.add()("jobs", "threads; 0: one per core", cxxopts::value<int>()->default_value("0"))(
      "estimate", "estimate by the longest path instead of SimGrid: faster, without contention")(
      "runnable", "only layouts that `polyphony run` can train")(
      "effort", "how much to estimate and simulate in a large search: 2 is twice the work",
      cxxopts::value<double>()->default_value(effort))(
      "journal",
      "file that keeps what was predicted so far: the same command continues from it after an "
      "interrupt, and answers at once when repeated; further files after commas are read only",
      cxxopts::value<std::vector<std::string>>());
}

void add_search_options(Arguments& args, const char* effort) {
  add_budget_options(args, effort);
  args.add()("top", "rows to print", cxxopts::value<int>()->default_value("12"))(
      "all", "also rows that differ from an earlier one only in details")(
      "memory-margin",
      "share of the device's memory that the best layout leaves free, such as 5%: fragmentation is "
      "not modeled (default: search.memory_margin of the scenario, 5%)",
      cxxopts::value<std::string>(), "SHARE")(
      "details",
      "also how many combinations were searched, why some are not legal, how much the search may "
      "have missed, and where the other placements lose time")(
      "wide", "print layouts with the keys of a scenario file")(
      "objective",
      "what the best layout is best at: step, tokens_per_gpu, days, dollars or p95; of two "
      "(days,dollars; step,memory) the Pareto front",
      cxxopts::value<std::vector<std::string>>())(
      "tokens", "language tokens to train on, for days and dollars: 1e12 or 1T",
      cxxopts::value<std::string>())("report",
                                     "also write the answer as one HTML page to this file",
                                     cxxopts::value<std::string>())(
      "json-out", "also write the answer as JSON to this file", cxxopts::value<std::string>())(
      "save-row", "row to save as a scenario in --out", cxxopts::value<int>())(
      "out", "file for --save-row", cxxopts::value<std::string>())(
      "for",
      "only layouts that a framework can run today, and what it lacks for the best of all: "
      "megatron-lm, megatron-bridge, torchtitan, ms-swift; of a version of it: torchtitan@0.2.2",
      cxxopts::value<std::string>(), "FRAMEWORK");
}

void add_sweep_options(Arguments& args) {
  args.add()("scenario", "scenario file", cxxopts::value<std::string>());
  add_search_options(args);
  args.add()("shard",
             "I/N: screen and estimate only the I-th of N parts, for job arrays; then run it "
             "without --shard and with "
             "the journals of all parts",
             cxxopts::value<std::string>())(
      "nodes", "how many nodes may be used: 8,16,48 or 8..64 (doubling)",
      cxxopts::value<std::string>())(
      "vary",
      "search once for each of several values: PATH=A,B,C or PATH=A..B (doubling); repeatable. A "
      "PATH in the layout varies the scenario's own layout, without a search: "
      "layout.planner=none,entrain,dip",
      cxxopts::value<std::vector<std::string>>(),
      "PATH=VALUES")("save", "folder for scenarios of the best layout of each placement",
                     cxxopts::value<std::string>());
  args.add_hidden()("save-rank", "earlier name of --save-row", cxxopts::value<int>());
}

std::vector<Override> goal_overrides(const Arguments& args) {
  std::vector<Override> goal;
  if (args.has("objective")) {
    std::string names;
    for (const std::string& each : args.texts("objective")) {
      check_objective(each);
      names += (names.empty() ? "\"" : ",\"") + each + "\"";
    }
    goal.push_back(parse_override("goal.objective=[" + names + "]"));
  }
  if (args.has("nodes")) {
    std::string counts;
    for (const std::string& each : parse_variation("nodes=" + args.text("nodes")).values)
      counts += (counts.empty() ? "" : ",") + each;
    goal.push_back(parse_override("goal.nodes=[" + counts + "]"));
  }
  if (args.has("tokens"))
    goal.push_back(parse_override("goal.tokens=" + tokens_of(args.text("tokens"))));
  if (args.has("memory-margin"))
    goal.push_back(parse_override("search.memory_margin=" + margin_of(args.text("memory-margin"))));
  return goal;
}

SweepOptions sweep_options(const Arguments& args) {
  SweepOptions options;
  options.part = part_of(args);
  options.jobs = args.jobs();
  options.runnable = args.has("runnable");
  options.effort = args.has("thorough") && !args.has("effort") ? 1 : args.real("effort");
  if (!(options.effort > 0 && options.effort <= 1000))
    throw InputError("--effort", "", "must be above 0 and at most 1000", "1 is the usual effort");
  options.cores = cores_here();
  options.memory = free_memory();
  if (args.has("estimate")) options.predictor = Predictor::estimate;
  if (args.has("for")) options.target = sweep_target(parse_target(args.text("for")));
  return options;
}

}  // namespace polyphony::sim
