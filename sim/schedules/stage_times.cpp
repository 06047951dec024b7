#include "sim/schedules/stage_times.h"

#include <algorithm>
#include <map>
#include <set>

#include "shared/text/quantity_text.h"
#include "sim/text/csv.h"

namespace polyphony::sim {
namespace {

const std::set<std::string> kColumns = {"module",  "stage",          "microbatch",
                                        "forward", "backward_input", "backward_weight",
                                        "bytes",   "message"};
constexpr int kMost = 1 << 20;  // microbatches, parts of one, stages
constexpr int kAll = -1;

// Microbatch and part; microbatch kAll: all microbatches.
using Work = std::pair<int, int>;

// Digits without a unit are in base units.
template <class Parse>
double quantity(const CsvRow& row, const std::string& column, Parse parse) {
  const std::string text = row.text(column);
  if (text.empty()) return 0;
  double value = 0;
  if (text.find_first_not_of("0123456789.eE+-") == std::string::npos) {
    value = *row.number(column);
  } else {
    try {
      value = parse(text);
    } catch (const InputError& wrong) {
      row.refuse(column, wrong.what_is_wrong, wrong.hint);
    }
  }
  if (value < 0) row.refuse(column, "must not be negative", "times and sizes are 0 or more");
  return value;
}
Seconds time(const CsvRow& row, const std::string& column) {
  return Seconds(
      quantity(row, column, [](const std::string& t) { return parse_seconds(t).count(); }));
}

int count(const CsvRow& row, const std::string& column, const std::string& text) {
  const bool digits =
      !text.empty() && text.size() < 9 && text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || std::stoi(text) >= kMost)
    row.refuse(column, "\"" + text + "\" is not a valid index",
               column == "stage"
                   ? "stages are 0, 1, 2 …"
                   : "microbatches are 0, 1, 2 … or all; parts of one are 3.0, 3.1 …");
  return std::stoi(text);
}
Work work_of(const CsvRow& row) {
  const std::string text = row.text("microbatch");
  if (text == "all") return {kAll, 0};
  const std::size_t point = text.find('.');
  return {count(row, "microbatch", text.substr(0, point)),
          point == std::string::npos ? 0 : count(row, "microbatch", text.substr(point + 1))};
}

struct ModuleRows {
  std::string name;
  std::size_t line = 0;                             // of its first row
  std::map<std::pair<int, Work>, StageCost> costs;  // by stage, work
  int stages = 0;
};

[[noreturn]] void refuse(const std::string& file, std::size_t line, const std::string& what,
                         const std::string& hint) {
  throw InputError(file, "line " + std::to_string(line), what, hint);
}

std::string name_of(const Work& work) {
  return std::to_string(work.first) + (work.second > 0 ? "." + std::to_string(work.second) : "");
}

ModuleTimes times_of(const ModuleRows& rows, const std::string& file, int microbatches, bool last) {
  std::set<Work> works;
  for (const auto& [place, cost] : rows.costs) {
    if (place.second.first != kAll)
      works.insert(place.second);
    else
      for (int k = 0; k < microbatches; ++k) works.insert({k, 0});
  }
  ModuleTimes module{rows.name, rows.stages, {}, {}};
  for (const Work& work : works) module.microbatch_of.push_back(work.first);
  for (int stage = 0; stage < rows.stages; ++stage)
    for (const Work& work : works) {
      auto found = rows.costs.find({stage, work});
      if (found == rows.costs.end()) found = rows.costs.find({stage, {kAll, 0}});
      if (found == rows.costs.end())
        refuse(file, rows.line,
               "module " + rows.name + " has no time for stage " + std::to_string(stage) +
                   " and microbatch " + name_of(work),
               "every stage of a module needs a row for each of its microbatches, or one for all");
      module.costs.push_back(found->second);
    }
  if (!last) return module;
  for (int k = 0; k < microbatches; ++k)
    if (std::count(module.microbatch_of.begin(), module.microbatch_of.end(), k) != 1)
      refuse(file, rows.line,
             "module " + rows.name + " has " +
                 std::to_string(
                     std::count(module.microbatch_of.begin(), module.microbatch_of.end(), k)) +
                 " rows for microbatch " + std::to_string(k),
             "the last module must process each microbatch exactly once, whole");
  return module;
}

}  // namespace

StageTimes read_stage_times(const std::string& text, const std::string& file, int microbatches) {
  const CsvTable table = read_csv(text, file);
  for (const char* needed :
       {"module", "stage", "microbatch", "forward", "backward_input", "backward_weight"})
    if (std::find(table.columns.begin(), table.columns.end(), needed) == table.columns.end())
      throw InputError(file, "line 1", "has no column " + std::string(needed),
                       "columns are module, stage, microbatch, forward, backward_input, "
                       "backward_weight and optionally bytes, message");
  for (const std::string& column : table.columns)
    if (!kColumns.contains(column))
      throw InputError(file, "line 1", "\"" + column + "\" is not a column of stage times",
                       "polyphony schedules --help lists the columns");
  std::vector<ModuleRows> modules;
  for (const CsvTable::Line& line : table.lines) {
    const CsvRow row(table, line);
    const std::string name = row.text("module");
    if (name.empty()) row.refuse("module", "is empty", "name the module");
    auto module = std::find_if(modules.begin(), modules.end(),
                               [&](const ModuleRows& one) { return one.name == name; });
    if (module == modules.end()) module = modules.insert(modules.end(), {name, line.number, {}, 0});
    const int stage = count(row, "stage", row.text("stage"));
    const Work work = work_of(row);
    const StageCost cost{
        time(row, "forward"), time(row, "backward_input"), time(row, "backward_weight"),
        Bytes(static_cast<std::int64_t>(quantity(
            row, "bytes", [](const std::string& t) { return double(parse_bytes(t).value); }))),
        time(row, "message")};
    if (!module->costs.try_emplace({stage, work}, cost).second)
      row.refuse("microbatch", "occurs twice for stage " + std::to_string(stage) + " of " + name,
                 "remove one of the rows");
    module->stages = std::max(module->stages, stage + 1);
    microbatches = std::max(microbatches, work.first + 1);
  }
  if (modules.empty())
    throw InputError(file, "", "has no rows", "add a row for each stage and microbatch");
  if (microbatches == 0)
    throw InputError(file, "",
                     "the number of microbatches is unknown: every row is for all of them",
                     "give --microbatches");
  StageTimes times{microbatches, {}};
  for (const ModuleRows& module : modules)
    times.modules.push_back(times_of(module, file, microbatches, &module == &modules.back()));
  return times;
}

bool has_bytes(const StageTimes& times) {
  for (const ModuleTimes& module : times.modules)
    for (const StageCost& cost : module.costs)
      if (cost.kept > Bytes(0)) return true;
  return false;
}

}  // namespace polyphony::sim
