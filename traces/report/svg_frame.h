// The ground of charts with two axes: title, legend, ticks, a horizontal level.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "traces/report/svg.h"
#include "traces/report/svg_canvas.h"

namespace polyphony::traces {

// The range of values and the pixels that they are drawn on.
struct Frame {
  double low_x = 0, high_x = 1, low_y = 0, high_y = 1;
  double left = 58, right = 0, top = 0, bottom = 0;
  double x(double value) const {
    return left + (right - left) * (value - low_x) / (high_x - low_x);
  }
  double y(double value) const {
    return bottom - (bottom - top) * (value - low_y) / (high_y - low_y);
  }
};

// Room for all points, and the level.
Frame frame_of(const std::vector<std::pair<double, double>>& points, const ChartOptions& options);

// Title, legend of (class, name), axes with ticks and labels, level. Sets the frame's pixels.
void draw_ground(Canvas& canvas, Frame& frame, const ChartOptions& options,
                 const std::vector<std::pair<std::string, std::string>>& entries);

// "s3", "b3": strokes and fills of the i-th of several.
std::string series_class(const char* kind, std::size_t i);

}  // namespace polyphony::traces
