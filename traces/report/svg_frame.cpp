#include "traces/report/svg_frame.h"

#include <algorithm>
#include <limits>

namespace polyphony::traces {
namespace {

constexpr double kRight = 16, kBottom = 40;
constexpr std::size_t kSeriesColours = 6;  // .s0 to .s5
// Pixels reserved for the text of a tick.
constexpr double kTickWidth = 90;

// Draws the title and the legend; returns the y at which the plot may begin.
double head(Canvas& canvas, const ChartOptions& options,
            const std::vector<std::pair<std::string, std::string>>& entries) {
  double y = 0;
  if (!options.title.empty()) {
    canvas.text(0, 14, "title", options.title);
    y = 24;
  }
  return entries.empty() ? y + 8 : canvas.legend(0, y, entries) + 10;
}

void draw_y_axis(Canvas& canvas, const Frame& frame, const std::string& label) {
  const Ticks marks = ticks(frame.low_y, frame.high_y, 5);
  for (double at : marks.at) {
    canvas.line(frame.left, frame.y(at), frame.right, frame.y(at), "grid");
    canvas.text(frame.left - 7, frame.y(at) + 4, "end", marks.text(at));
  }
  canvas.text(0, frame.top - 6, "", label);
}

void draw_x_axis(Canvas& canvas, const Frame& frame, const ChartOptions& options) {
  const auto mark = [&](double at, const std::string& text) {
    canvas.line(frame.x(at), frame.bottom, frame.x(at), frame.bottom + 4, "axis");
    canvas.text(frame.x(at), frame.bottom + 17, "mid", text);
  };
  if (options.x_names.empty()) {
    const Ticks marks =
        ticks(frame.low_x, frame.high_x, static_cast<int>(options.width / kTickWidth));
    for (double at : marks.at) mark(at, marks.text(at));
  }
  for (std::size_t i = 0; i < options.x_names.size(); ++i)
    mark(static_cast<double>(i), options.x_names[i]);
  canvas.line(frame.left, frame.bottom, frame.right, frame.bottom, "axis");
  canvas.text((frame.left + frame.right) / 2, frame.bottom + 33, "mid", options.x_label);
}

void draw_level(Canvas& canvas, const Frame& frame, const ChartOptions& options) {
  if (!options.level) return;
  const double y = frame.y(options.level->first);
  canvas.line(frame.left, y, frame.right, y, "level");
  canvas.text(frame.right - 4, y - 4, "end", options.level->second);
}

}  // namespace

std::string series_class(const char* kind, std::size_t i) {
  return kind + std::to_string(i % kSeriesColours);
}

Frame frame_of(const std::vector<std::pair<double, double>>& points, const ChartOptions& options) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Frame frame{kInfinity, -kInfinity, kInfinity, -kInfinity};
  for (const auto& [x, y] : points) {
    frame.low_x = std::min(frame.low_x, x);
    frame.high_x = std::max(frame.high_x, x);
    frame.low_y = std::min(frame.low_y, y);
    frame.high_y = std::max(frame.high_y, y);
  }
  if (frame.low_x > frame.high_x) frame = {0, 1, 0, 1};
  if (!options.x_names.empty()) {  // half a position on either side
    frame.low_x = -0.5;
    frame.high_x = static_cast<double>(options.x_names.size()) - 0.5;
  }
  if (options.level) {
    frame.low_y = std::min(frame.low_y, options.level->first);
    frame.high_y = std::max(frame.high_y, options.level->first);
  }
  if (options.y_from_zero) frame.low_y = std::min(0.0, frame.low_y);
  if (frame.high_x <= frame.low_x) frame.high_x = frame.low_x + 1;
  if (frame.high_y <= frame.low_y) frame.high_y = frame.low_y + 1;
  const double room = (frame.high_y - frame.low_y) * 0.06;
  frame.high_y += room;
  if (!options.y_from_zero) frame.low_y -= room;
  return frame;
}

void draw_ground(Canvas& canvas, Frame& frame, const ChartOptions& options,
                 const std::vector<std::pair<std::string, std::string>>& entries) {
  frame.top = head(canvas, options, entries) + 12;
  frame.right = options.width - kRight;
  frame.bottom = options.height - kBottom;
  draw_y_axis(canvas, frame, options.y_label);
  draw_x_axis(canvas, frame, options);
  draw_level(canvas, frame, options);
}

}  // namespace polyphony::traces
