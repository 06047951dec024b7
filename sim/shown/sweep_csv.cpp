#include "sim/shown/sweep_csv.h"

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "shared/model/layout_fields.h"
#include "shared/text/json_form.h"
#include "sim/answer_json/answers_json.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

using Row = std::vector<std::pair<std::string, std::string>>;  // (column, value)

std::string cell_of(const json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string list;  // "40 26 26 26"
  for (const json& one : value) list += (list.empty() ? "" : " ") + cell_of(one);
  return list;
}

std::string csv_cell(const std::string& cell) {
  if (cell.find_first_of(",\"\n\r") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char c : cell) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

// The figures of the answer's JSON: the most wanted first, then all others; the ends of an interval
// in columns of their own. The layout's numbers follow as columns.
void add_figures(const json& candidate, Row& row) {
  std::vector<std::string> keys = {
      "placement",     "step_seconds", "interval90_seconds", "simulated",   "step_change",
      "step_change90", "tied",         "peak_memory_bytes",  "worst_stage", "brief",
      "layout"};
  for (const auto& [key, value] : candidate.items())
    if (key != "name" && key != "layout_form" &&
        std::find(keys.begin(), keys.end(), key) == keys.end())
      keys.push_back(key);
  for (const std::string& key : keys) {
    const json value = candidate.value(key, json());
    if (key.find("90") != std::string::npos) {
      row.emplace_back(key + "_low", value.is_null() ? "" : cell_of(value[0]));
      row.emplace_back(key + "_high", value.is_null() ? "" : cell_of(value[1]));
    } else if (value.is_object()) {
      for (const auto& [part, seconds] : value.items())
        row.emplace_back(key + "." + part, cell_of(seconds));
    } else {
      row.emplace_back(key, cell_of(value));
    }
  }
}

template <class Field, class Whole>
std::string cell_of(const Field& field, const Whole& whole) {
  std::string cell;
  field.show(whole, [&]<class Value>(const Value& value) {
    if constexpr (std::is_enum_v<Value>)
      cell = name(value);
    else
      cell = cell_of(json(value));
  });
  return cell;
}

void add_layout(const Model& model, const Layout& layout, Row& row) {
  row.emplace_back("schedule", schedule_name(layout));
  for (const LayoutField* field : in_order(layout_fields(), &LayoutField::column))
    row.emplace_back(field->key, cell_of(*field, layout));
  for (std::size_t m = 0; m < layout.modules.size(); ++m) {
    if (grid_owner(model, ModuleId(m)) != ModuleId(m)) continue;
    const ModuleLayout& grid = layout.modules[m];
    const std::string module = model.modules[m].name + ".";
    for (const GridField* field : in_order(grid_fields(), &GridField::column)) {
      row.emplace_back(module + field->key, cell_of(*field, grid));
      if (field->key == std::string_view("pp"))
        row.emplace_back(module + "dp", std::to_string(grid.dp()));
    }
  }
}

Row row_of(const std::string& rank, const Candidate& c, const Model& model) {
  Row row{{"rank", rank}};
  add_figures(to_json(c, model), row);
  add_layout(model, c.layout, row);
  return row;
}

// Columns in order of first appearance.
std::string text_of(const std::vector<Row>& rows) {
  std::vector<std::string> columns;
  for (const Row& row : rows)
    for (const auto& [column, value] : row)
      if (std::find(columns.begin(), columns.end(), column) == columns.end())
        columns.push_back(column);
  std::string text;
  for (std::size_t i = 0; i < columns.size(); ++i) text += (i ? "," : "") + csv_cell(columns[i]);
  text += "\n";
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto found = std::find_if(row.begin(), row.end(),
                                      [&](const auto& cell) { return cell.first == columns[i]; });
      text += (i ? "," : "") + (found == row.end() ? "" : csv_cell(found->second));
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string csv_text(const Sweep& sweep, const Model& model) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < sweep.ranked.size(); ++i)
    rows.push_back(row_of(std::to_string(i + 1), sweep.ranked[i], model));
  for (const BaselineResult& baseline : sweep.baselines)
    rows.push_back(row_of(baseline.name, baseline.candidate, model));
  if (rows.empty()) return "rank\n";
  return text_of(rows);
}

std::string csv_text(const Varied& varied) {
  std::vector<Row> rows;
  for (const Asked& asked : varied.asked) {
    Row question;
    for (std::size_t i = 0; i < varied.variations.size(); ++i)
      question.emplace_back(varied.variations[i].path, asked.values[i]);
    question.emplace_back("why_not", asked.why_not);
    std::vector<Placement> seen;
    const std::vector<Candidate>& ranked = asked.answer.ranked;
    for (std::size_t i = 0; i < ranked.size(); ++i) {
      const Placement placement = ranked[i].layout.placement;
      if (std::find(seen.begin(), seen.end(), placement) != seen.end()) continue;
      seen.push_back(placement);
      Row row = question;
      const Row answer = row_of(std::to_string(i + 1), ranked[i], asked.model);
      row.insert(row.end(), answer.begin(), answer.end());
      rows.push_back(std::move(row));
    }
    if (ranked.empty()) rows.push_back(question);
  }
  return text_of(rows);
}

}  // namespace polyphony::sim
