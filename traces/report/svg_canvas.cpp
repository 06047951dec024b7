#include "traces/report/svg_canvas.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "traces/report/svg.h"

namespace polyphony::traces {
namespace {

std::string attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + fixed(value) + "\"";
}
std::string class_attribute(const std::string& classes) { return " class=\"" + classes + "\""; }

// Width of a letter in the 11 px sans-serif font of svg_style(); used only to wrap a legend.
constexpr double kLetterWidth = 6.9;

}  // namespace

std::string fixed(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.2f", value);
  std::string result = text;
  while (result.back() == '0') result.pop_back();
  if (result.back() == '.') result.pop_back();
  return result == "-0" ? "0" : result;
}

void Canvas::rect(double x, double y, double width, double height, const std::string& classes,
                  const std::string& hover) {
  body_ += "<rect" + attribute("x", x) + attribute("y", y) +
           attribute("width", std::max(0.0, width)) + attribute("height", height) +
           class_attribute(classes);
  body_ += hover.empty() ? "/>\n" : "><title>" + escape(hover) + "</title></rect>\n";
}

void Canvas::line(double x1, double y1, double x2, double y2, const std::string& classes) {
  body_ += "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
           attribute("y2", y2) + class_attribute(classes) + "/>\n";
}

void Canvas::text(double x, double y, const std::string& classes, const std::string& what) {
  body_ += "<text" + attribute("x", x) + attribute("y", y) + class_attribute(classes) + ">" +
           escape(what) + "</text>\n";
}

void Canvas::circle(double x, double y, double radius, const std::string& classes,
                    const std::string& hover) {
  body_ += "<circle" + attribute("cx", x) + attribute("cy", y) + attribute("r", radius) +
           class_attribute(classes) + "><title>" + escape(hover) + "</title></circle>\n";
}

void Canvas::path(const std::string& d, const std::string& classes) {
  body_ += "<path d=\"" + d + "\"" + class_attribute(classes) + "/>\n";
}

double Canvas::legend(double x, double y,
                      const std::vector<std::pair<std::string, std::string>>& class_and_name) {
  double at = x;
  for (const auto& [classes, name] : class_and_name) {
    const double needed = 16 + kLetterWidth * static_cast<double>(name.size()) + 14;
    if (at > x && at + needed > width_) {
      at = x;
      y += 17;
    }
    rect(at, y, 11, 11, classes);
    text(at + 16, y + 10, "", name);
    at += needed;
  }
  return y + 17;
}

std::string Canvas::finish(double height) const {
  return "<svg viewBox=\"0 0 " + fixed(width_) + " " + fixed(height) +
         "\" width=\"100%\" style=\"max-width:" + fixed(width_) +
         "px\" role=\"img\" class=\"plot\" aria-label=\"" + escape(title_) + "\">\n" + body_ +
         "</svg>\n";
}

std::string Ticks::text(double value) const {
  const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  char text[40];
  std::snprintf(text, sizeof text, "%.*f", std::min(decimals, 9), value);
  return text;
}

Ticks ticks(double low, double high, int count) {
  if (!(high > low)) high = low + 1;
  const double rough = (high - low) / std::max(1, count);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double ratio = rough / power;
  Ticks result;
  result.step = power * (ratio <= 1 ? 1 : ratio <= 2 ? 2 : ratio <= 5 ? 5 : 10);
  for (double i = std::ceil(low / result.step - 1e-9); i * result.step <= high + 1e-9 * result.step;
       ++i) {
    result.at.push_back(i * result.step + 0.0);  // no -0
  }
  return result;
}

Unit time_unit(double largest) {
  if (largest >= 1 || largest == 0) return {"s", 1};
  if (largest >= 1e-3) return {"ms", 1e-3};
  return largest >= 1e-6 ? Unit{"us", 1e-6} : Unit{"ns", 1e-9};
}

Unit bytes_unit(double largest) {
  constexpr double kKibi = 1024;
  if (largest >= kKibi * kKibi * kKibi) return {"GiB", kKibi * kKibi * kKibi};
  if (largest >= kKibi * kKibi) return {"MiB", kKibi * kKibi};
  return largest >= kKibi ? Unit{"KiB", kKibi} : Unit{"B", 1};
}

}  // namespace polyphony::traces
