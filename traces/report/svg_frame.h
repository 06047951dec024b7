// The frame of a chart with two axes: title, legend, ticks, and a horizontal level line.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "traces/report/svg.h"
#include "traces/report/svg_canvas.h"

namespace polyphony::traces {

// The range of values and the pixels to which it is mapped.
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

// Returns a frame that contains all points and the level.
Frame frame_of(const std::vector<std::pair<double, double>>& points, const ChartOptions& options);

// Draws the title, a legend of (class, name), axes with ticks and labels, and the level. Sets the
// pixel range of the frame.
void draw_ground(Canvas& canvas, Frame& frame, const ChartOptions& options,
                 const std::vector<std::pair<std::string, std::string>>& entries);

// Returns "s3" or "b3": the class of the stroke or fill of series i.
std::string series_class(const char* kind, std::size_t i);

}  // namespace polyphony::traces
