// Draws charts as SVG text, for a page (report.h) or a file of their own: Gantt charts of
// Timelines, line and bar charts, maps, memory curves.
//
// Shapes have classes only; svg_style() colors them, in a page by CSS variables (both themes), in a
// file by fixed colors. All text is escaped. Coordinates are pixels of the viewBox; charts scale
// down with their frame.
//
// Gantt charts have a row per rank with the compute stream, and below it thin lanes of messages and
// of collectives. Active time is drawn in full color, time blocked inside an op in pale color
// (traces/compare/activity.h), and idle time is the background. Encoder and projector modules have
// a lighter tint.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/planner/timetable.h"
#include "shared/program/program.h"
#include "shared/program/timeline.h"

namespace polyphony::traces {

// page: colors are CSS variables, var(--name), which theme_variables() defines.
enum class Theme : std::uint8_t { light, dark, page };

std::string escape(const std::string& text);  // for XML text and attributes
std::string svg_style(Theme theme);           // CSS rules of the classes below
std::string theme_variables(Theme theme);     // "--ink:#1b2433;…" for light or dark
// Returns a chart as a standalone file that any viewer opens.
std::string svg_file(const std::string& svg, Theme theme);

std::string percent(double ratio);  // "+12.3 %"

struct GanttOptions {
  std::string title;
  double width = 1000;
  std::optional<Seconds> span{};  // time axis; absent: the makespan
  std::size_t most_ranks = 32;    // more are sampled evenly, and the chart states so
};
std::string gantt(const Program& program, const Timeline& timeline, const GanttOptions& options);

// Draws the actions of one or several schedules over time, below each other on one axis.
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
  bool broad = false;  // drawn with a wide line, visible below another line
};
struct ChartOptions {
  std::string title, x_label, y_label;
  double width = 640, height = 300;
  bool y_from_zero = true;
  std::optional<std::pair<double, std::string>> level{};  // a horizontal line and its label
  std::vector<std::string> x_names{};  // labels of x = 0, 1, 2 …, if x is not a number
};
std::string line_chart(const std::vector<Series>& series, const ChartOptions& options);

// One point of a scatter chart. Its interval is drawn to its left and right, clipped to the chart;
// it is not drawn if neither end is visible.
struct Mark {
  double x = 0, y = 0;
  std::size_t kind = 0;
  bool hollow = false;
  std::string hover;
  std::optional<std::pair<double, double>> interval{};
  std::string label{};  // drawn next to the point, which is then a diamond
};
// Draws points of several kinds and a line through the points of `front`.
std::string scatter_chart(const std::vector<std::string>& kinds, const std::vector<Mark>& marks,
                          const std::vector<std::pair<double, double>>& front,
                          const ChartOptions& options);

// Draws bars of stacked parts below each other, each under its name, on one axis with the label
// options.x_label. The height follows from the number of bars.
struct Bar {
  std::string name, value, text;  // "homogeneous", "17.4 s", the layout
  std::vector<double> parts;
};
std::string bar_chart(const std::vector<std::pair<std::string, std::string>>& class_and_part,
                      const std::vector<Bar>& bars, const ChartOptions& options);

// A table of colored cells with two lines of text each. The height follows from the rows.
struct MapCell {
  std::string classes;  // of the background; empty: no result
  std::string first, second, hover;
};
struct CellMap {
  std::string row_label, column_label;
  std::vector<std::string> rows, columns;
  std::vector<MapCell> cells;  // row-major; missing cells were not computed
  std::vector<std::pair<std::string, std::string>> class_and_name;
};
std::string map_chart(const CellMap& map, const ChartOptions& options);

// Draws the total memory of each rank over the step, with the capacity as a line.
std::string memory_chart(const Program& program, const Timeline& timeline,
                         const std::vector<Rank>& ranks, std::optional<Bytes> capacity,
                         const ChartOptions& options);

}  // namespace polyphony::traces
