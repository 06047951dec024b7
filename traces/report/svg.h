// Pictures as SVG text, for a page (report.h) or a file of their own: Gantt charts of Timelines,
// line and bar charts, memory curves.
//   Shapes carry classes only; svg_style() colours them, in a page by CSS variables (both themes),
//   in a file by fixed colours. All text is escaped. Coordinates are pixels of the viewBox;
//   pictures shrink with their frame.
// Gantt: a row per rank with the compute stream, below it a thin lane of messages and one of
// collectives. Time at work is drawn full, time blocked inside an op pale (traces/compare/activity.h), idle
// time is the row's ground. Encoder and projector modules are tinted lighter.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/planner/timetable.h"
#include "shared/program/program.h"
#include "shared/program/timeline.h"

namespace polyphony::traces {

// page: var(--name), which theme_variables() define.
enum class Theme : std::uint8_t { light, dark, page };

std::string escape(const std::string& text);  // for XML text and attributes
std::string svg_style(Theme theme);           // CSS rules of the classes below
std::string theme_variables(Theme theme);     // "--ink:#1b2433;…" of light or dark
// A picture as a file that any viewer opens.
std::string svg_file(const std::string& svg, Theme theme);

std::string percent(double ratio);  // "+12.3 %"

struct GanttOptions {
  std::string title;
  double width = 1000;
  std::optional<Seconds> span{};  // time axis; absent: the makespan
  std::size_t most_ranks = 32;    // more are thinned out evenly, and it says so
};
std::string gantt(const Program& program, const Timeline& timeline, const GanttOptions& options);

// Actions over time, schedules below each other on one axis.
struct OrdersRow {
  std::string title;
  const StepCosts* costs = nullptr;
  const Timetable* table = nullptr;
};
std::string orders_chart(const std::vector<OrdersRow>& rows);

struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;
  bool steps = false;  // holds its value until the next point
  bool broad = false;  // seen below another line too
};
struct ChartOptions {
  std::string title, x_label, y_label;
  double width = 640, height = 300;
  bool y_from_zero = true;
  std::optional<std::pair<double, std::string>> level{};  // a horizontal line and its label
  std::vector<std::string> x_names{};  // of the places 0, 1, 2 …, where x is no number
};
std::string line_chart(const std::vector<Series>& series, const ChartOptions& options);

// Points of several kinds and, through some of them, a front. Left and right of a point its interval, as far as
// the picture reaches; none where no end of it is in sight.
struct Mark {
  double x = 0, y = 0;
  std::size_t kind = 0;
  bool hollow = false;
  std::string hover;
  std::optional<std::pair<double, double>> interval{};
  std::string label{};  // drawn beside it, as a diamond
};
std::string scatter_chart(const std::vector<std::string>& kinds, const std::vector<Mark>& marks,
                          const std::vector<std::pair<double, double>>& front,
                          const ChartOptions& options);

// Bars of stacked parts below each other, each under its name, all on one axis; options.x_label is
// the axis's, the height follows from the bars.
struct Bar {
  std::string name, value, text;  // "homogeneous", "17.4 s", the layout
  std::vector<double> parts;
};
std::string bar_chart(const std::vector<std::pair<std::string, std::string>>& class_and_part,
                      const std::vector<Bar>& bars, const ChartOptions& options);

// A table of coloured cells of two lines. Height: as rows need.
struct MapCell {
  std::string classes;  // of its ground; empty: nothing is known
  std::string first, second, hover;
};
struct CellMap {
  std::string row_label, column_label;
  std::vector<std::string> rows, columns;
  std::vector<MapCell> cells;  // row by row; fewer: not asked
  std::vector<std::pair<std::string, std::string>> class_and_name;
};
std::string map_chart(const CellMap& map, const ChartOptions& options);

// Total memory of each rank over the step, with the capacity as a line.
std::string memory_chart(const Program& program, const Timeline& timeline,
                         const std::vector<Rank>& ranks, std::optional<Bytes> capacity,
                         const ChartOptions& options);

}  // namespace polyphony::traces
