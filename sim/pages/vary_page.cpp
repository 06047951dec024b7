#include "sim/pages/vary_page.h"

#include <algorithm>

#include "shared/model/layout.h"
#include "shared/text/figure_text.h"
#include "shared/text/json_form.h"
#include "traces/report/report_parts.h"
#include "traces/report/svg_canvas.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;

constexpr const char* kTints[] = {"forward tint", "backward tint", "optimizer tint",
                                  "recompute tint"};  // by Placement

std::size_t place_of(const json& placement) {
  const std::vector<std::string> names = enum_names<Placement>();
  return static_cast<std::size_t>(
      std::find(names.begin(), names.end(), placement.get<std::string>()) - names.begin());
}

std::vector<std::string> values_of(const json& answer, std::size_t variation) {
  return answer.at("variations").at(variation).at("values").get<std::vector<std::string>>();
}
std::string path_of(const json& answer, std::size_t variation) {
  return answer.at("variations").at(variation).at("path").get<std::string>();
}

// "-9 %": the best's step against the best homogeneous one's; empty: there is none, or it is that.
std::string against_homogeneous(const json& question) {
  const json& steps = question.at("step_seconds");
  const char* homogeneous = name(Placement::homogeneous);
  if (question.at("best").is_null() || !steps.contains(homogeneous)) return "";
  const double best = question.at("best").at("step_seconds").get<double>();
  const double ratio = best / steps.at(homogeneous).get<double>() - 1;
  return ratio == 0 ? "" : percent_text(ratio, 1);
}

traces::Table questions_table(const json& answer) {
  traces::Table table{"", {}, {}, {}, ""};
  const std::size_t variations = answer.at("variations").size();
  for (std::size_t v = 0; v < variations; ++v) table.columns.push_back(path_of(answer, v));
  for (const char* column : {"step time", "compared with homogeneous", "memory", "layout"})
    table.columns.emplace_back(column);
  table.texts = 1;
  for (const json& question : answer.at("questions")) {
    std::vector<std::string> row;
    for (std::size_t v = 0; v < variations; ++v)
      row.push_back(question.at("set").at(path_of(answer, v)).get<std::string>());
    const json& best = question.at("best");
    if (best.is_null()) {
      row.insert(row.end(), {"-", "", "", question.at("why_not").get<std::string>()});
    } else {
      row.insert(row.end(), {seconds_text(Seconds(best.at("step_seconds").get<double>())),
                             against_homogeneous(question),
                             bytes_text(Bytes(best.at("peak_memory_bytes").get<std::int64_t>())),
                             best.at("words").get<std::string>()});
    }
    table.rows.push_back(std::move(row));
  }
  table.note =
      "The best layout of each question, and its step time compared with the best layout that has "
      "one "
      "grid for all modules (homogeneous).";
  return table;
}

traces::MapCell cell_of(const json& question) {
  const json& best = question.at("best");
  if (best.is_null()) return {"", "-", "", question.at("why_not").get<std::string>()};
  return {kTints[place_of(best.at("placement"))],
          seconds_text(Seconds(best.at("step_seconds").get<double>())),
          against_homogeneous(question), best.at("brief").get<std::string>()};
}

// The variation of fewer values across where the picture is narrow.
traces::Figure regime_map(const json& answer) {
  const json& questions = answer.at("questions");
  const auto drawn = [&](const traces::ChartOptions& options, bool turned) {
    traces::CellMap map;
    const std::size_t down = turned ? 1 : 0;
    map.row_label = path_of(answer, down);
    map.column_label = path_of(answer, 1 - down);
    map.rows = values_of(answer, down);
    map.columns = values_of(answer, 1 - down);
    std::vector<bool> seen(std::size(kTints));
    for (std::size_t r = 0; r < map.rows.size(); ++r)
      for (std::size_t c = 0; c < map.columns.size(); ++c) {
        const std::size_t i = turned ? c * map.rows.size() + r : r * map.columns.size() + c;
        if (i >= questions.size()) {
          map.cells.push_back({"", "", "", "not asked"});
          continue;
        }
        map.cells.push_back(cell_of(questions.at(i)));
        const json& best = questions.at(i).at("best");
        if (!best.is_null()) seen[place_of(best.at("placement"))] = true;
      }
    const std::vector<std::string> names = enum_names<Placement>();
    for (std::size_t p = 0; p < names.size(); ++p)
      if (seen[p]) map.class_and_name.emplace_back(kTints[p], names[p]);
    return traces::map_chart(map, options);
  };
  const bool wider = values_of(answer, 1).size() > values_of(answer, 0).size();
  const traces::ChartOptions options{};
  return traces::figure(
      options,
      [&](const traces::ChartOptions& o) { return drawn(o, wider && o.width < options.width); },
      "Color: placement of the best layout. Cells: its step time, and compared with the best "
      "homogeneous layout.");
}

traces::Figure lines(const json& answer) {
  const json& questions = answer.at("questions");
  double slowest = 0;
  for (const json& question : questions)
    for (const json& step : question.at("step_seconds"))
      slowest = std::max(slowest, step.get<double>());
  const auto [unit, size] = traces::time_unit(slowest);
  std::vector<traces::Series> series;
  for (const std::string& placement : enum_names<Placement>()) {
    traces::Series line{placement, {}, false, series.empty()};  // homogeneous is the broad line
    for (std::size_t i = 0; i < questions.size(); ++i)
      if (const json& steps = questions.at(i).at("step_seconds"); steps.contains(placement))
        line.points.emplace_back(static_cast<double>(i), steps.at(placement).get<double>() / size);
    if (line.points.empty()) line.name.clear();  // its colour stays its own
    series.push_back(std::move(line));
  }
  traces::ChartOptions options;
  options.x_label = path_of(answer, 0);
  options.y_label = "best step, " + unit;
  options.x_names = values_of(answer, 0);
  options.height = 320;
  return traces::figure(
      options, [&](const traces::ChartOptions& o) { return traces::line_chart(series, o); },
      "The best layout of each placement; the broad line is homogeneous.");
}

}  // namespace

std::vector<traces::Section> vary_sections(const json& answer) {
  const std::size_t variations = answer.at("variations").size();
  std::vector<traces::Section> sections;
  if (variations == 2) sections.push_back({"Regimes", {regime_map(answer)}});
  if (variations == 1) sections.push_back({"By placement", {lines(answer)}});
  sections.push_back({"Questions", {questions_table(answer)}});
  return sections;
}

}  // namespace polyphony::sim
