#include <algorithm>
#include <limits>

#include "shared/program/memory.h"
#include "shared/text/quantity_text.h"
#include "traces/report/svg.h"
#include "traces/report/svg_canvas.h"

namespace polyphony::traces {
namespace {

constexpr double kLeft = 58, kRight = 16, kBottom = 40;
constexpr std::size_t kColours = 6;    // .s0 to .s5
constexpr std::size_t kMostDots = 60;  // a curve of more points is drawn without dots

struct Frame {
  double low_x = 0, high_x = 1, low_y = 0, high_y = 1;
  double left = kLeft, right = 0, top = 0, bottom = 0;
  double x(double value) const {
    return left + (right - left) * (value - low_x) / (high_x - low_x);
  }
  double y(double value) const {
    return bottom - (bottom - top) * (value - low_y) / (high_y - low_y);
  }
};

std::string series_class(const char* kind, std::size_t i) {
  return kind + std::to_string(i % kColours);
}

// Title and legend; returns where the plot may begin.
double head(Canvas& canvas, const ChartOptions& options, const std::vector<std::string>& names) {
  double y = 0;
  if (!options.title.empty()) {
    canvas.text(0, 14, "title", options.title);
    y = 24;
  }
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty()) entries.emplace_back(series_class("b", i), names[i]);
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

void draw_level(Canvas& canvas, const Frame& frame, const ChartOptions& options) {
  if (!options.level) return;
  const double y = frame.y(options.level->first);
  canvas.line(frame.left, y, frame.right, y, "level");
  canvas.text(frame.right - 4, y - 4, "end", options.level->second);
}

Frame frame_of(const std::vector<Series>& series, const ChartOptions& options) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Frame frame{kInfinity, -kInfinity, kInfinity, -kInfinity};
  for (const Series& one : series) {
    for (const auto& [x, y] : one.points) {
      frame.low_x = std::min(frame.low_x, x);
      frame.high_x = std::max(frame.high_x, x);
      frame.low_y = std::min(frame.low_y, y);
      frame.high_y = std::max(frame.high_y, y);
    }
  }
  if (frame.low_x > frame.high_x) frame = {0, 1, 0, 1};
  if (options.level) {
    frame.low_y = std::min(frame.low_y, options.level->first);
    frame.high_y = std::max(frame.high_y, options.level->first);
  }
  if (options.y_from_zero) frame.low_y = std::min(0.0, frame.low_y);
  if (frame.high_x <= frame.low_x) frame.high_x = frame.low_x + 1;
  if (frame.high_y <= frame.low_y) frame.high_y = frame.low_y + 1;
  frame.high_y += (frame.high_y - frame.low_y) * 0.06;
  return frame;
}

std::string curve(const Series& series, const Frame& frame) {
  std::string d;
  double last = 0;
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const auto& [x, y] = series.points[i];
    if (i == 0) {
      d = "M" + fixed(frame.x(x)) + " " + fixed(frame.y(y));
    } else {
      if (series.steps) d += "L" + fixed(frame.x(x)) + " " + fixed(frame.y(last));
      d += "L" + fixed(frame.x(x)) + " " + fixed(frame.y(y));
    }
    last = y;
  }
  return d;
}

}  // namespace

std::string line_chart(const std::vector<Series>& series, const ChartOptions& options) {
  Canvas canvas(options.width, options.title);
  Frame frame = frame_of(series, options);
  std::vector<std::string> names;
  for (const Series& one : series) names.push_back(one.name);
  frame.top = head(canvas, options, names) + 12;
  frame.right = options.width - kRight;
  frame.bottom = options.height - kBottom;
  draw_y_axis(canvas, frame, options.y_label);
  const Ticks marks = ticks(frame.low_x, frame.high_x, static_cast<int>(options.width / 90));
  for (double at : marks.at) {
    canvas.line(frame.x(at), frame.bottom, frame.x(at), frame.bottom + 4, "axis");
    canvas.text(frame.x(at), frame.bottom + 17, "mid", marks.text(at));
  }
  canvas.line(frame.left, frame.bottom, frame.right, frame.bottom, "axis");
  canvas.text((frame.left + frame.right) / 2, frame.bottom + 33, "mid", options.x_label);
  draw_level(canvas, frame, options);
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (series[i].points.empty()) continue;
    canvas.path(curve(series[i], frame), "curve " + series_class("s", i));
    if (series[i].points.size() > kMostDots || series[i].steps) continue;
    for (const auto& [x, y] : series[i].points) {
      canvas.circle(
          frame.x(x), frame.y(y), 2.6, series_class("b", i),
          (series[i].name.empty() ? "" : series[i].name + ": ") + fixed(x) + ", " + fixed(y));
    }
  }
  return canvas.finish(options.height);
}

std::string memory_chart(const Program& program, const Timeline& timeline,
                         const std::vector<Rank>& ranks, std::optional<Bytes> capacity,
                         const ChartOptions& options) {
  std::vector<std::vector<std::pair<Seconds, Bytes>>> curves;
  Bytes largest = capacity.value_or(Bytes{});
  for (Rank rank : ranks) {
    curves.push_back(memory_curve(program, timeline, rank));
    for (const auto& [time, bytes] : curves.back()) largest = std::max(largest, bytes);
  }
  const Unit unit = bytes_unit(static_cast<double>(largest.value));
  const Unit time = time_unit(timeline.makespan.count());
  std::vector<Series> series;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Series one{"rank " + std::to_string(ranks[i].value), {}, true};
    for (const auto& [when, bytes] : curves[i]) {
      one.points.emplace_back(when.count() / time.size,
                              static_cast<double>(bytes.value) / unit.size);
    }
    if (!one.points.empty())
      one.points.emplace_back(timeline.makespan.count() / time.size, one.points.back().second);
    series.push_back(std::move(one));
  }
  ChartOptions labelled = options;
  labelled.x_label = "time, " + time.name;
  labelled.y_label = "memory, " + unit.name;
  if (capacity) {
    labelled.level = {static_cast<double>(capacity->value) / unit.size,
                      "capacity " + short_text(*capacity)};
  }
  return line_chart(series, labelled);
}

}  // namespace polyphony::traces
