#include "sim/pages/sweep_page.h"

#include <algorithm>

#include "shared/text/figure_text.h"
#include "shared/text/json_form.h"
#include "traces/report/report_parts.h"
#include "traces/report/svg_canvas.h"

namespace polyphony::sim {
namespace {

constexpr const char* kTints[] = {"forward tint", "backward tint", "optimizer tint",
                                  "recompute tint"};  // by Placement

// "-9 %": the best's step against the best homogeneous one's; empty: there is none, or it is that.
std::string against_homogeneous(const SearchedQuestion& question) {
  const auto homogeneous = question.steps.find(Placement::homogeneous);
  if (!question.best || homogeneous == question.steps.end()) return "";
  const double ratio = question.best->step / homogeneous->second - 1;
  return ratio == 0 ? "" : percent_text(ratio, 1);
}

traces::Table questions_table(const SearchedVaried& answer) {
  traces::Table table{"", {}, {}, {}, ""};
  for (const Variation& variation : answer.variations) table.columns.push_back(variation.path);
  for (const char* column : {"step time", "compared with homogeneous", "memory", "layout"})
    table.columns.emplace_back(column);
  table.texts = 1;
  for (const SearchedQuestion& question : answer.questions) {
    std::vector<std::string> row = question.values;
    if (!question.best)
      row.insert(row.end(), {"-", "", "", question.why_not});
    else
      row.insert(row.end(), {seconds_text(question.best->step), against_homogeneous(question),
                             bytes_text(question.best->memory), question.best->words});
    table.rows.push_back(std::move(row));
  }
  table.note =
      "The best layout of each question, and its step time compared with the best layout that has "
      "one "
      "grid for all modules (homogeneous).";
  return table;
}

traces::MapCell cell_of(const SearchedQuestion& question) {
  if (!question.best) return {"", "-", "", question.why_not};
  return {kTints[static_cast<std::size_t>(question.best->placement)],
          seconds_text(question.best->step), against_homogeneous(question), question.best->brief};
}

// The variation of fewer values across where the picture is narrow.
traces::Figure regime_map(const SearchedVaried& answer) {
  const std::vector<SearchedQuestion>& questions = answer.questions;
  const auto drawn = [&](const traces::ChartOptions& options, bool turned) {
    traces::CellMap map;
    const std::size_t down = turned ? 1 : 0;
    map.row_label = answer.variations[down].path;
    map.column_label = answer.variations[1 - down].path;
    map.rows = answer.variations[down].values;
    map.columns = answer.variations[1 - down].values;
    std::vector<bool> seen(std::size(kTints));
    for (std::size_t r = 0; r < map.rows.size(); ++r)
      for (std::size_t c = 0; c < map.columns.size(); ++c) {
        const std::size_t i = turned ? c * map.rows.size() + r : r * map.columns.size() + c;
        if (i >= questions.size()) {
          map.cells.push_back({"", "", "", "not asked"});
          continue;
        }
        map.cells.push_back(cell_of(questions[i]));
        if (questions[i].best) seen[static_cast<std::size_t>(questions[i].best->placement)] = true;
      }
    const std::vector<std::string> names = enum_names<Placement>();
    for (std::size_t p = 0; p < names.size(); ++p)
      if (seen[p]) map.class_and_name.emplace_back(kTints[p], names[p]);
    return traces::map_chart(map, options);
  };
  const bool wider = answer.variations[1].values.size() > answer.variations[0].values.size();
  const traces::ChartOptions options{};
  return traces::figure(
      options,
      [&](const traces::ChartOptions& o) { return drawn(o, wider && o.width < options.width); },
      "Color: placement of the best layout. Cells: its step time, and compared with the best "
      "homogeneous layout.");
}

traces::Figure lines(const SearchedVaried& answer) {
  const std::vector<SearchedQuestion>& questions = answer.questions;
  double slowest = 0;
  for (const SearchedQuestion& question : questions)
    for (const auto& [placement, step] : question.steps) slowest = std::max(slowest, step.count());
  const auto [unit, size] = traces::time_unit(slowest);
  std::vector<traces::Series> series;
  for (const std::string& placement : enum_names<Placement>()) {
    traces::Series line{placement, {}, false, series.empty()};  // homogeneous is the broad line
    for (std::size_t i = 0; i < questions.size(); ++i)
      if (const auto step = questions[i].steps.find(enum_named<Placement>(placement));
          step != questions[i].steps.end())
        line.points.emplace_back(static_cast<double>(i), step->second.count() / size);
    if (line.points.empty()) line.name.clear();  // its colour stays its own
    series.push_back(std::move(line));
  }
  traces::ChartOptions options;
  options.x_label = answer.variations[0].path;
  options.y_label = "best step, " + unit;
  options.x_names = answer.variations[0].values;
  options.height = 320;
  return traces::figure(
      options, [&](const traces::ChartOptions& o) { return traces::line_chart(series, o); },
      "The best layout of each placement; the broad line is homogeneous.");
}

}  // namespace

std::vector<traces::Section> vary_sections(const SearchedVaried& answer) {
  const std::size_t variations = answer.variations.size();
  std::vector<traces::Section> sections;
  if (variations == 2) sections.push_back({"Regimes", {regime_map(answer)}});
  if (variations == 1) sections.push_back({"By placement", {lines(answer)}});
  sections.push_back({"Questions", {questions_table(answer)}});
  return sections;
}

}  // namespace polyphony::sim
