// Building blocks of the charts: a growing SVG text, axes with round ticks, a legend.
#pragma once

#include <string>
#include <vector>

namespace polyphony::traces {

// Margins of a chart with one row per rank, in pixels.
inline constexpr double kRowsLeft = 58, kRowsRight = 12;
// Adjacent boxes that are together thinner than this, in pixels, are drawn as one.
inline constexpr double kThin = 0.35;

std::string fixed(double value);  // at most two decimals, no trailing zeros

class Canvas {
 public:
  Canvas(double width, const std::string& title) : width_(width), title_(title) {}

  // Each call appends one shape. `hover`: text of a tooltip; empty: none. Texts are escaped here.
  void rect(double x, double y, double width, double height, const std::string& classes,
            const std::string& hover = "");
  void line(double x1, double y1, double x2, double y2, const std::string& classes);
  void text(double x, double y, const std::string& classes, const std::string& what);
  void circle(double x, double y, double radius, const std::string& classes,
              const std::string& hover);
  void path(const std::string& d, const std::string& classes);
  // Draws color swatches with names, starting at (x, y) and wrapped at the chart's width. Returns
  // the y below the last line.
  double legend(double x, double y,
                const std::vector<std::pair<std::string, std::string>>& class_and_name);

  double width() const { return width_; }
  std::string finish(double height) const;

 private:
  double width_;
  std::string title_;
  std::string body_;
};

// Positions of axis ticks at multiples of 1, 2 or 5 times a power of ten.
struct Ticks {
  double step = 1;
  std::vector<double> at;
  std::string text(double value) const;  // with as many decimals as the step has
};
// Returns about `count` ticks that cover [low, high].
Ticks ticks(double low, double high, int count);

// A unit such as {"ms", 1e-3} in which the largest number of a chart is readable.
struct Unit {
  std::string name;
  double size = 1;
};
Unit time_unit(double largest_seconds);
Unit bytes_unit(double largest_bytes);

}  // namespace polyphony::traces
