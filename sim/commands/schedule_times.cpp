// polyphony schedules --times: compares schedules by a table of times alone.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "shared/schedule/action_text.h"
#include "shared/text/json_form.h"
#include "shared/text/quantity_text.h"
#include "sim/cli/command.h"
#include "sim/commands/schedule_times.h"
#include "sim/console/console.h"
#include "sim/schedules/module_actions.h"
#include "sim/schedules/stage_times.h"
#include "traces/report/svg.h"

namespace polyphony::sim {
namespace {

std::string worst_and_mean(const std::vector<double>& shares) {
  double sum = 0, worst = 0;
  for (const double share : shares) {
    sum += share;
    worst = std::max(worst, share);
  }
  return percent_text(sum / static_cast<double>(shares.size())) + ", " + percent_text(worst);
}
Bytes peak(const ComparedSchedule& row) {
  return *std::max_element(row.table.peak.begin(), row.table.peak.end());
}
std::string above(Seconds makespan, Seconds bound) {
  return signed_percent_text(bound > Seconds(0) ? std::max(0.0, makespan / bound - 1) : 0);
}
// Of drawn batches: the 5th and the 95th percentile.
std::pair<Seconds, Seconds> interval(const std::vector<Seconds>& drawn) {
  const auto at = [&](double share) {
    return drawn[static_cast<std::size_t>(share * static_cast<double>(drawn.size() - 1) + 0.5)];
  };
  return {at(0.05), at(0.95)};
}

void print_table(const ScheduleComparison& comparison, const CompareOptions& options) {
  std::vector<std::string> header{"schedule", "makespan"};
  if (options.draws > 0) header.push_back("90 % of\nrandom batches");
  header.insert(header.end(),
                {"idle (bubble):\nmean, worst rank", "peak\nactivations",
                 "above bound\nof its stages", "above bound\nof any stages", "setting"});
  Table table(header);
  std::string refused;
  for (const ComparedSchedule& row : comparison.rows) {
    if (!row.refusal.empty()) {
      refused += row.name + ": " + row.refusal + "\n";
      continue;
    }
    std::vector<std::string> cells{row.name, seconds_text(row.table.makespan)};
    if (options.draws > 0) {
      cells.push_back("");
      if (!row.drawn.empty()) {
        const auto [low, high] = interval(row.drawn);
        cells.back() = seconds_text(low) + " to " + seconds_text(high);
      }
    }
    cells.insert(cells.end(), {worst_and_mean(bubbles(row.table)),
                               bytes_text(peak(row)) + (row.fits ? "" : " (too much)"),
                               above(row.table.makespan, row.bound),
                               above(row.table.makespan, comparison.bound), row.setting});
    table.add(cells);
  }
  std::cout << table.text(screen_columns()) << refused << "lower bound of any stages on "
            << counted(options.ranks, "rank", "ranks") << ": " << seconds_text(comparison.bound)
            << "\n";
}

void print_csv(const ScheduleComparison& comparison) {
  std::cout << "schedule,setting,makespan_seconds,draws_low,draws_high,bound_seconds,"
               "any_bound_seconds,mean_bubble,worst_bubble,peak_activation_bytes,fits,rank_bubbles,"
               "rank_peak_activation_bytes,refusal\n";
  for (const ComparedSchedule& row : comparison.rows) {
    const auto text = [](const std::string& cell) {
      return cell.find(',') == std::string::npos ? cell : "\"" + cell + "\"";
    };
    std::cout << text(row.name) << "," << text(row.setting) << ",";
    if (!row.refusal.empty()) {
      std::cout << ",,,,,,,,,,," << text(row.refusal) << "\n";
      continue;
    }
    double sum = 0, worst = 0;
    std::ostringstream rests, peaks;  // by rank
    for (const double share : bubbles(row.table)) {
      sum += share;
      worst = std::max(worst, share);
      rests << (rests.tellp() > 0 ? " " : "") << share;
    }
    for (const Bytes bytes : row.table.peak) peaks << (peaks.tellp() > 0 ? " " : "") << bytes.value;
    std::cout << row.table.makespan.count() << ",";
    if (row.drawn.empty()) {
      std::cout << ",,";
    } else {
      const auto [low, high] = interval(row.drawn);
      std::cout << low.count() << "," << high.count() << ",";
    }
    std::cout << row.bound.count() << "," << comparison.bound.count() << ","
              << sum / static_cast<double>(row.table.busy.size()) << "," << worst << ","
              << peak(row).value << "," << (row.fits ? "true" : "false") << "," << rests.str()
              << "," << peaks.str() << ",\n";
  }
}

std::string drawing(const ScheduleComparison& comparison) {
  std::vector<traces::OrdersRow> rows;
  for (const ComparedSchedule& row : comparison.rows)
    if (row.refusal.empty())
      rows.push_back({row.name + (row.setting.empty() ? "" : ", " + row.setting) + ": " +
                          seconds_text(row.table.makespan),
                      &row.costs, &row.table});
  return traces::svg_file(traces::orders_chart(rows), traces::Theme::light);
}

// The order of a row as a file: PyTorch's CSV or our own form where all modules are one chain, else
// a CSV whose cells name the module ("vision 0F3"), as --schedule reads it. Microbatches that are
// cut into parts are written as in the CSV of times (3.1); such a file documents the order,
// --schedule does not read it.
std::string order_file(const ComparedSchedule& row, bool csv) {
  std::vector<Actions> orders;
  bool one_chain = true;
  for (const std::vector<TimedAction>& rank : row.table.ranks) {
    orders.emplace_back();
    for (const TimedAction& timed : rank) {
      orders.back().push_back(timed.action);
      one_chain = one_chain && timed.action.branch == 0;
    }
  }
  if (one_chain && row.costs.branches.size() == 1)
    return csv ? csv_text(orders) : compact_text(orders);
  std::string text;
  for (const Actions& rank : orders) {
    std::string line;
    for (Action action : rank) {
      const BranchCosts& branch = row.costs.branches[action.branch];
      action.branch = 0;
      std::string cell = csv_text({{action}});
      cell.erase(cell.find_last_not_of("\r\n") + 1);
      if (branch.works() != row.costs.microbatches) {  // "0F22" becomes "0F13.1"
        const std::vector<int>& of = branch.microbatch_of;
        const int microbatch = of[action.work];
        const auto first = std::find(of.begin(), of.end(), microbatch) - of.begin();
        cell = cell.substr(0, cell.find_first_of("FBIW") + 1) + std::to_string(microbatch) + "." +
               std::to_string(static_cast<long>(action.work) - first);
      }
      line += (line.empty() ? "" : ",") + branch.name + " " + cell;
    }
    text += line + "\n";
  }
  return text;
}

// Writes the order of the best row: of the schedule that ORDER names, else of the quickest that
// fits.
void write_order(const Arguments& args, const ScheduleComparison& comparison) {
  const std::string path = args.text("out");
  if (comparison.rows.empty() || !comparison.rows.front().refusal.empty())
    throw InputError("--out", "", "there is no order to write",
                     comparison.rows.empty() ? "" : comparison.rows.front().refusal);
  const ComparedSchedule& row = comparison.rows.front();
  write_file(path, order_file(row, path.ends_with(".csv")));
  std::cerr << "wrote the order of \"" << row.name << "\" to " << path << "\n";
}

void check_memory_column(const StageTimes& times, const std::string& file) {
  for (const ModuleTimes& module : times.modules)
    for (const StageCost& cost : module.costs)
      if (cost.kept > Bytes(0)) return;
  throw InputError("--memory", "", "needs the column \"bytes\" in " + file,
                   "the bytes that each forward keeps for its backward");
}

}  // namespace

void compare_times(const Arguments& args) {
  const std::string file = args.text("times");
  if (!args.has("ranks"))
    throw InputError("--times", "", "needs --ranks", "the ranks of the pipeline: --ranks 8");
  if (!args.has("order") && !args.has("schedule") && !args.has("all"))
    throw InputError("--times", "", "needs a schedule to look at",
                     "name one as ORDER, compare all with --all, or give a file of actions with "
                     "--schedule");
  CompareOptions options;
  options.ranks = args.integer("ranks");
  if (options.ranks < 1)
    throw InputError("--ranks", "",
                     "must be at least 1 (got " + std::to_string(options.ranks) + ")",
                     "the ranks of the pipeline");
  args.check_outputs({"out", "gantt"});
  if (args.has("draws")) options.draws = args.integer("draws");
  if (options.draws < 0 || options.draws > 10000)
    throw InputError("--draws", "",
                     "must be 0 to 10000 (got " + std::to_string(options.draws) + ")",
                     "20 give an interval");
  if (args.has("memory")) options.memory = parse_bytes(args.text("memory"));
  const StageTimes times = read_stage_times(
      read_file(file), file, args.has("microbatches") ? args.integer("microbatches") : 0);
  if (options.memory) check_memory_column(times, file);
  const std::vector<std::string> names = scheme_names(times, options);
  std::string order = args.has("order") ? args.text("order") : "";
  bool named = std::find(names.begin(), names.end(), order) != names.end();
  if (!named && std::find(names.begin(), names.end(), lower_case(order)) != names.end()) {
    order = lower_case(order);
    named = true;
  }
  if (!order.empty() && !named && !std::filesystem::exists(order))
    throw InputError(order, "", "is neither a schedule nor a file", suggest(order, names));
  if (!args.has("all")) options.only = named ? order : kOwn;
  std::string own;
  if (args.has("schedule"))
    own = args.text("schedule");
  else if (args.has("order") && !named)
    own = order;
  if (!own.empty()) {
    const std::string text = read_file(own);
    options.own_by_module = names_modules(text, times);
    options.own =
        options.own_by_module ? read_module_actions(text, own, times) : read_orders(text, own);
    if (options.own.size() != static_cast<std::size_t>(options.ranks))
      throw InputError(own, "", "has actions of " + std::to_string(options.own.size()) + " ranks",
                       "--ranks says " + std::to_string(options.ranks));
  }
  const ScheduleComparison comparison = compare_schedules(times, options);
  for (const ComparedSchedule& row : comparison.rows)
    if (row.name == kOwn && !row.refusal.empty())
      throw InputError(own, "", row.refusal,
                       options.own_by_module
                           ? "a row a rank, from rank 0 on; each microbatch once in each stage of "
                             "each module"
                           : "a row a rank, from rank 0 on; stages of all modules "
                             "in one chain, each microbatch once in each");
  if (args.has("gantt")) write_file(args.text("gantt"), drawing(comparison));
  if (args.has("out")) write_order(args, comparison);
  if (args.json())
    std::cout << comparison_json(comparison) << "\n";
  else if (args.csv())
    print_csv(comparison);
  else
    print_table(comparison, options);
}

}  // namespace polyphony::sim
