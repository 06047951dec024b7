#include <algorithm>

#include "traces/report/svg_frame.h"

namespace polyphony::traces {
namespace {

constexpr double kRadius = 3.6, kDiamond = 5.5;

void draw_interval(Canvas& canvas, const Frame& frame, const Mark& mark) {
  const double y = frame.y(mark.y);
  const double from = std::max(frame.left, frame.x(mark.interval->first));
  const double to = std::min(frame.right, frame.x(mark.interval->second));
  if (from == frame.left && to == frame.right) return;
  const std::string classes = "whisker " + series_class("s", mark.kind);
  canvas.line(from, y, to, y, classes);
  if (from > frame.left) canvas.line(from, y - 3, from, y + 3, classes);
  if (to < frame.right) canvas.line(to, y - 3, to, y + 3, classes);
}

void draw_diamond(Canvas& canvas, const Frame& frame, const Mark& mark) {
  const double x = frame.x(mark.x), y = frame.y(mark.y);
  const std::string d = "M" + fixed(x - kDiamond) + " " + fixed(y) + "L" + fixed(x) + " " +
                        fixed(y - kDiamond) + "L" + fixed(x + kDiamond) + " " + fixed(y) + "L" +
                        fixed(x) + " " + fixed(y + kDiamond) + "Z";
  canvas.path(d, "beside");
  const bool at_left = x > (frame.left + frame.right) / 2;
  canvas.text(at_left ? x - kDiamond - 4 : x + kDiamond + 4, y + 4, at_left ? "on end" : "on",
              mark.label);
}

}  // namespace

std::string scatter_chart(const std::vector<std::string>& kinds, const std::vector<Mark>& marks,
                          const std::vector<std::pair<double, double>>& front,
                          const ChartOptions& options) {
  Canvas canvas(options.width, options.title);
  std::vector<std::pair<double, double>> points = front;
  for (const Mark& mark : marks) {
    points.emplace_back(mark.x, mark.y);
  }
  Frame frame = frame_of(points, options);
  const double room = 0.03 * (frame.high_x - frame.low_x);
  frame.low_x -= room;
  frame.high_x += room;
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (std::any_of(marks.begin(), marks.end(),
                    [&](const Mark& mark) { return mark.label.empty() && mark.kind == i; }))
      entries.emplace_back(series_class("b", i), kinds[i]);
  draw_ground(canvas, frame, options, entries);
  std::string d;
  for (std::size_t i = 0; i < front.size(); ++i)  // drawn as a step function
    d += i == 0 ? "M" + fixed(frame.x(front[i].first)) + " " + fixed(frame.y(front[i].second))
                : "L" + fixed(frame.x(front[i].first)) + " " + fixed(frame.y(front[i - 1].second)) +
                      "L" + fixed(frame.x(front[i].first)) + " " + fixed(frame.y(front[i].second));
  if (!d.empty()) canvas.path(d, "front");
  for (const Mark& mark : marks)
    if (mark.interval) draw_interval(canvas, frame, mark);
  for (std::size_t i = marks.size(); i-- > 0;) {  // the first on top
    const Mark& mark = marks[i];
    if (mark.label.empty())
      canvas.circle(frame.x(mark.x), frame.y(mark.y), kRadius,
                    mark.hollow ? "hollow " + series_class("s", mark.kind)
                                : "op " + series_class("b", mark.kind),
                    mark.hover);
  }
  for (const Mark& mark : marks)
    if (!mark.label.empty()) draw_diamond(canvas, frame, mark);
  return canvas.finish(options.height);
}

}  // namespace polyphony::traces
