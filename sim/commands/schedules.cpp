// polyphony schedules: verifies, simulates, draws and writes an order of actions, of a file or a
// named schedule; or compares schedules by times alone.
#include <cmath>
#include <iostream>

#include "shared/check/check.h"
#include "shared/lower/lower.h"
#include "shared/planner/equal_costs.h"
#include "shared/planner/timetable.h"
#include "shared/scenario/typical_batch.h"
#include "shared/schedule/action_text.h"
#include "shared/schedule/orders.h"
#include "shared/split/balanced_plan.h"
#include "shared/text/json_form.h"
#include "shared/verify/verify.h"
#include "sim/cli/command.h"
#include "sim/commands/schedule_times.h"
#include "sim/console/console.h"
#include "sim/prediction/figures.h"
#include "traces/report/svg.h"

namespace polyphony::sim {
namespace {

// One rank along the pipeline.
struct Row {
  std::string stages;
  std::size_t actions = 0;
  int tapes = 0;  // saved activations in flight, at most
  Bytes peak{};
};

std::vector<Row> rows_of(const Plan& plan, const StepPlan& step, const Prediction& prediction) {
  const Branch& branch = plan.branches[plan.language];
  std::vector<Row> rows;
  for (int p = 0; p < branch.grid.pp; ++p) {
    const Rank rank = branch.grid.rank_at(0, 0, 0, p);
    Row row{"", step.actions(rank).size(),
            tapes_in_flight(step.actions(rank), static_cast<int>(plan.language)),
            prediction.memory[rank.value].peak};
    for (std::size_t s = 0; s < branch.stages.size(); ++s)
      if (branch.rank_of_stage[s] == p)
        row.stages += (row.stages.empty() ? "" : " ") + std::to_string(s);
    rows.push_back(row);
  }
  return rows;
}

// The actions of the language module's pipeline alone.
std::vector<Actions> pipeline_orders(const Plan& plan, const StepPlan& step) {
  const ModuleLayout& grid = plan.branches[plan.language].grid;
  std::vector<Actions> orders;
  for (int p = 0; p < grid.pp; ++p) {
    orders.emplace_back();
    for (Action action : step.actions(grid.rank_at(0, 0, 0, p))) {
      if (action.branch != plan.language) continue;
      action.branch = 0;
      orders.back().push_back(action);
    }
  }
  return orders;
}

Timetable unit_timetable(const std::vector<Actions>& orders, const ActionLengths& lengths,
                         const std::string& order) {
  auto outcome = timetable(equal_costs(orders, lengths), orders);
  if (const auto* no = std::get_if<Infeasible>(&outcome))
    throw InputError(order, "", no->reason, "--out writes a schedule's own order, to compare");
  return std::get<Timetable>(std::move(outcome));
}

// CSV columns by which cells of one column run at the same time if all actions take equally long.
std::vector<std::vector<int>> columns(const std::vector<Actions>& orders,
                                      const std::string& order) {
  const ActionLengths equal{Seconds(1), Seconds(1), Seconds(1), Seconds(1)};
  std::vector<std::vector<int>> result;
  for (const auto& rank : unit_timetable(orders, equal, order).ranks) {
    result.emplace_back();
    for (const TimedAction& timed : rank)
      result.back().push_back(static_cast<int>(std::lround(timed.start.count())));
  }
  return result;
}

}  // namespace

int schedules_command(int argc, char** argv) {
  Arguments args(
      "schedules",
      "Verifies, simulates, draws and writes the order of actions of a pipeline.\n"
      "ORDER is a schedule's name (" +
          joined(enum_names(kLastSchedule)) +
          "), or a file: our own form (shared/schedule/action_text.h), or the CSV that PyTorch's "
          "pipelining loads: a row a rank, cells 0F0 0B0 2I0 2W0, without messages.\n"
          "A forward may name what its backward recomputes: 0F3:full, :selective, :none.\n"
          "--times: compares schedules by a table of times alone, without a scenario; ORDER or "
          "--all, "
          "each schedule at its best setting.\n"
          "  columns: module (in the order of the data, the last fed by all others), stage (0, 1 "
          "…, "
          "the finest split),\n"
          "  microbatch (0, 1 …, all, or parts of one: 3.0, 3.1), forward, backward_input, "
          "backward_weight (seconds, or 1.5ms),\n"
          "  and optionally bytes (kept for the backward), message (seconds to the next stage)\n"
          "  rows: named schedules over all modules in one chain; encoders first; bubble filling "
          "(as Optimus does);\n"
          "  non-colocated, reordered (as DistTrain does); entrain; modalities in parallel (as "
          "Cornstarch does); dip;\n"
          "  own: --schedule FILE, actions on stages of all modules in one chain, in one of the "
          "forms above,\n"
          "  or on stages of each module: a CSV whose cells name it, vision 0F3, language 1B0;\n"
          "  searched: the stages of each row above, with an order that a search found\n"
          "  above bound: how far above a lower bound of any order of these stages, and of any "
          "stages at all",
      "ORDER, or --times CSV --ranks N",
      "  polyphony schedules zb-v --scenario scenarios/rehearse_8.json --set layout.language.vpp=2 "
      "--out order.csv\n"
      "  polyphony schedules order.csv --scenario scenarios/rehearse_8.json --gantt step.svg\n"
      "  polyphony schedules --times scenarios/times/vlm.csv --ranks 4 --all --gantt page.svg\n"
      "  polyphony schedules --times scenarios/times/vlm.csv --ranks 4 searched --out order.csv\n"
      "  polyphony run scenarios/rehearse_8.json --schedule order.csv");
  args.add()("order", "a schedule's name, or a file", cxxopts::value<std::string>())(
      "scenario", "scenario file with a layout", cxxopts::value<std::string>())(
      "gantt", "write a Gantt chart as SVG", cxxopts::value<std::string>())(
      "out",
      "write the order to a file: a CSV if its name ends in .csv, else our own form; with --times "
      "the "
      "order of the quickest row that fits",
      cxxopts::value<std::string>())("times", "CSV of the times of stages",
                                     cxxopts::value<std::string>())(
      "all", "with --times: every schedule")("schedule",
                                             "with --times: a file of actions, as one more row",
                                             cxxopts::value<std::string>())(
      "ranks", "with --times: ranks of the pipeline", cxxopts::value<int>())(
      "microbatches", "with --times: how many, where every row of the CSV says all",
      cxxopts::value<int>())(
      "memory",
      "with --times: memory of a rank for saved activations (60GiB); needs the "
      "column bytes",
      cxxopts::value<std::string>())(
      "draws", "with --times: random batches of the given microbatches, for intervals",
      cxxopts::value<int>());
  args.add_profile();
  args.add_overrides();
  args.add_csv();
  args.positional({"order"});
  if (args.parse(argc, argv)) return 0;
  if (args.has("times")) {
    compare_times(args);
    return 0;
  }
  if (args.has("schedule"))
    throw InputError("--schedule", "", "needs --times", "without it give the file as ORDER");
  if (args.csv())
    throw InputError("--format csv", "", "needs --times", "--out order.csv writes an order");
  args.check_outputs({"out", "gantt"});
  const std::vector<Override> overrides = args.overrides();
  Scenario scenario = open_scenario(args.require("scenario"), overrides);
  apply_schedule(scenario, args.require("order"));
  const Layout& layout = require_layout(scenario);
  const HardwareProfile profile = load_profile(scenario, args.profile(), overrides);
  require_memory(scenario, layout, {});
  const Batch batch = typical_batch(scenario);
  const Plan plan = balanced_plan(scenario, layout, profile);  // as predict() splits it
  const StepPlan step = make_step_plan(scenario, layout, plan, batch);
  if (const auto faults = verify(lower(scenario, layout, plan, step, batch)); !faults.empty()) {
    std::string all;
    for (const Fault& fault : faults)
      all += (all.empty() ? "" : "; ") + std::string(name(fault.kind)) + ": " + fault.text;
    throw InputError(args.text("order"), "", all,
                     "--out writes a schedule's own order, to compare");
  }
  const auto outcome = predict(scenario, layout, batch, profile, Predictor::simulate);
  if (const auto* no = std::get_if<Infeasible>(&outcome))
    throw NoAnswer(ExitCode::infeasible, scenario.file, "", no->reason);
  const auto& prediction = std::get<Prediction>(outcome);
  const Figures result = figures(scenario, prediction);
  const std::vector<Actions> orders = pipeline_orders(plan, step);
  const auto bubble =
      std::lround(longest_rest(unit_timetable(orders, {}, args.text("order"))).count());
  if (args.has("out"))
    write_file(args.text("out"), args.text("out").ends_with(".csv")
                                     ? csv_text(orders, columns(orders, args.text("order")))
                                     : compact_text(orders));
  if (args.has("gantt"))
    write_file(args.text("gantt"),
               traces::svg_file(traces::gantt(prediction.program, prediction.timeline,
                                              {.title = describe(scenario.model, layout)}),
                                traces::Theme::light));
  const std::vector<Row> rows = rows_of(plan, step, prediction);
  if (args.json()) {
    nlohmann::json ranks = nlohmann::json::array();
    for (const Row& row : rows)
      ranks.push_back({{"stages", row.stages},
                       {"actions", row.actions},
                       {"tapes_in_flight", row.tapes},
                       {"peak_memory_bytes", row.peak.value}});
    std::cout << nlohmann::json{{"layout", describe(scenario.model, layout)},
                                {"verified", true},
                                {"step_seconds", result.step.count()},
                                {"bubble_actions", bubble},
                                {"peak_memory_bytes", result.peak_memory.value},
                                {"pipeline_ranks", ranks}}
                     .dump(2)
              << "\n";
    return 0;
  }
  Table table({"rank", "stages", "actions", "saved activations", "peak memory"});
  for (std::size_t p = 0; p < rows.size(); ++p)
    table.add({std::to_string(p), rows[p].stages, std::to_string(rows[p].actions),
               std::to_string(rows[p].tapes), bytes_text(rows[p].peak)});
  std::cout << describe(scenario.model, layout) << "\n"
            << "verified; step " << seconds_text(result.step) << "; longest idle time (bubble) "
            << bubble << " units, where F, I and W take one unit and B two\n\n"
            << table.text(screen_columns());
  return 0;
}

}  // namespace polyphony::sim
