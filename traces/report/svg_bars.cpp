#include <algorithm>
#include <numeric>

#include "traces/report/svg_frame.h"

namespace polyphony::traces {
namespace {

constexpr double kBar = 18, kLine = 15, kGap = 14, kAxis = 36;
// Pixels: the width of "43 %" inside a part, and of a letter at 11 px.
constexpr double kShareWidth = 30, kLetter = 6.2;

std::string shortened(const std::string& text, double width) {
  const auto most = static_cast<std::size_t>(std::max(4.0, width / kLetter));
  return text.size() <= most ? text : text.substr(0, most - 2) + "…";
}

}  // namespace

std::string bar_chart(const std::vector<std::pair<std::string, std::string>>& class_and_part,
                      const std::vector<Bar>& bars, const ChartOptions& options) {
  Canvas canvas(options.width, options.title);
  double largest = 0;
  for (const Bar& bar : bars)
    largest = std::max(largest, std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0));
  if (largest <= 0) largest = 1;
  double y = 0;
  if (!options.title.empty()) {
    canvas.text(0, 14, "title", options.title);
    y = 24;
  }
  y = canvas.legend(0, y, class_and_part) + 10;
  const double top = y, right = options.width - 8;
  const auto at = [&](double value) { return right * value / largest; };
  const double bottom = top + static_cast<double>(bars.size()) * (2 * kLine + kBar + kGap);
  const Ticks marks = ticks(0, largest, static_cast<int>(options.width / 90));
  for (const double value : marks.at) {
    canvas.line(at(value), top, at(value), bottom, "grid");
    canvas.text(at(value), bottom + 15, value == 0 ? "" : "mid", marks.text(value));
  }
  canvas.text(right, bottom + 31, "end", options.x_label);
  for (const Bar& bar : bars) {
    canvas.text(0, y + 11, "rank strong", bar.name + ": " + bar.value);
    canvas.text(0, y + 11 + kLine, "", shortened(bar.text, options.width));
    y += 2 * kLine + 3;
    double from = 0;
    const double total = std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0);
    for (std::size_t i = 0; i < bar.parts.size(); ++i) {
      if (bar.parts[i] <= 0) continue;
      const double width = at(bar.parts[i]);
      const std::string share =
          fixed(static_cast<double>(static_cast<int>(1000 * bar.parts[i] / total + 0.5)) / 10) +
          " %";
      const auto& [classes, part] = class_and_part[i];
      canvas.rect(at(from), y, width, kBar, classes + " op",
                  part + ": " + share + " of " + bar.value);
      if (width >= kShareWidth)
        canvas.text(
            at(from) + width / 2, y + kBar - 5,
            classes.find("tint") == std::string::npos && classes.find("wait") == std::string::npos
                ? "box"
                : "box tint",
            fixed(static_cast<int>(100 * bar.parts[i] / total + 0.5)) + " %");
      from += bar.parts[i];
    }
    y += kBar + kGap - 3;
  }
  return canvas.finish(bottom + kAxis);
}

}  // namespace polyphony::traces
