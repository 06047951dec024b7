#include <algorithm>

#include "traces/report/svg_frame.h"

namespace polyphony::traces {
namespace {

constexpr double kCellHeight = 42, kGap = 2, kLetter = 6.6, kMostCell = 150;

}  // namespace

std::string map_chart(const CellMap& map, const ChartOptions& options) {
  Canvas canvas(options.width, options.title);
  double y = 0;
  if (!options.title.empty()) {
    canvas.text(0, 14, "title", options.title);
    y = 24;
  }
  y = canvas.legend(0, y, map.class_and_name) + 12;
  std::size_t longest = 0;
  for (const std::string& row : map.rows) longest = std::max(longest, row.size());
  const double left = kLetter * static_cast<double>(longest) + 8;
  const double width =
      std::min(kMostCell, (options.width - left) / static_cast<double>(map.columns.size()));
  canvas.text(0, y + 10, "", map.row_label + " ↓, " + map.column_label + " →");
  y += 30;
  for (std::size_t c = 0; c < map.columns.size(); ++c)
    canvas.text(left + width * (static_cast<double>(c) + 0.5), y, "mid rank", map.columns[c]);
  y += 8;
  for (std::size_t r = 0; r < map.rows.size(); ++r, y += kCellHeight) {
    canvas.text(left - 8, y + kCellHeight / 2 + 4, "end rank", map.rows[r]);
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const std::size_t i = r * map.columns.size() + c;
      if (i >= map.cells.size()) continue;
      const MapCell& cell = map.cells[i];
      const double x = left + width * static_cast<double>(c);
      const bool known = !cell.classes.empty();
      canvas.rect(x, y, width - kGap, kCellHeight - kGap, known ? cell.classes : "row", cell.hover);
      const std::string ink = known ? "cell tint" : "cell";
      canvas.text(x + (width - kGap) / 2, y + (cell.second.empty() ? 25 : 18), ink, cell.first);
      if (!cell.second.empty()) canvas.text(x + (width - kGap) / 2, y + 33, ink, cell.second);
    }
  }
  return canvas.finish(y + 4);
}

}  // namespace polyphony::traces
