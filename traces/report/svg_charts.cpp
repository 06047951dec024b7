#include <algorithm>

#include "shared/graph/memory.h"
#include "shared/text/quantity_text.h"
#include "traces/report/svg.h"
#include "traces/report/svg_frame.h"

namespace polyphony::traces {
namespace {

constexpr std::size_t kMostDots = 60;  // a curve with more points is drawn without dots

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
  std::vector<std::pair<double, double>> points;
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::size_t i = 0; i < series.size(); ++i) {
    points.insert(points.end(), series[i].points.begin(), series[i].points.end());
    if (!series[i].name.empty()) entries.emplace_back(series_class("b", i), series[i].name);
  }
  Frame frame = frame_of(points, options);
  draw_ground(canvas, frame, options, entries);
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (series[i].points.empty()) continue;
    canvas.path(curve(series[i], frame),
                (series[i].broad ? "curve broad " : "curve ") + series_class("s", i));
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
