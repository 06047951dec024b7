// polyphony schedules --times: compares schedules by a table of times alone.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "shared/schedule/action_text.h"
#include "shared/text/json_form.h"
#include "shared/text/quantity_text.h"
#include "sim/cli/command.h"
#include "sim/commands/schedule_times.h"
#include "sim/console/console.h"
#include "sim/schedules/module_actions.h"
#include "sim/schedules/order_text.h"
#include "sim/schedules/schedules_json.h"
#include "sim/schedules/stage_times.h"
#include "sim/shown/schedules_text.h"

namespace polyphony::sim {
namespace {

// Writes the order of the best row: of the schedule that ORDER names, else of the quickest that
// fits.
void write_order(const Arguments& args, const ScheduleComparison& comparison) {
  const std::string path = args.text("out");
  if (comparison.rows.empty() || !comparison.rows.front().refusal.empty())
    throw InputError("--out", "", "there is no order to write",
                     comparison.rows.empty() ? "" : comparison.rows.front().refusal);
  const ComparedSchedule& row = comparison.rows.front();
  write_file(path, order_text(row, path.ends_with(".csv")));
  std::cerr << "wrote the order of \"" << row.name << "\" to " << path << "\n";
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
  if (options.memory && !has_bytes(times))
    throw InputError("--memory", "", "needs the column \"bytes\" in " + file,
                     "the bytes that each forward keeps for its backward");
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
  if (args.has("gantt")) write_file(args.text("gantt"), comparison_chart(comparison));
  if (args.has("out")) write_order(args, comparison);
  if (args.json())
    std::cout << to_json(comparison).dump(2) << "\n";
  else
    std::cout << (args.csv() ? comparison_csv(comparison) : comparison_text(comparison, options));
}

}  // namespace polyphony::sim
