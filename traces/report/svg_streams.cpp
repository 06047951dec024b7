#include "traces/report/svg_streams.h"

#include <algorithm>

#include "shared/text/figure_text.h"
#include "traces/report/svg.h"
#include "traces/report/svg_canvas.h"

namespace polyphony::traces {
namespace {

constexpr double kStreamLane = 11, kStreamGap = 2, kRankGap = 7;

}  // namespace

std::string streams_chart(const std::vector<StreamLane>& lanes, const StreamsOptions& options) {
  const double span = std::max(1e-12, options.span.count());
  Canvas canvas(options.width, options.title);
  const auto x = [&](Seconds at) {
    return kRowsLeft +
           (options.width - kRowsLeft - kRowsRight) * std::clamp(at.count() / span, 0.0, 1.0);
  };
  canvas.text(0, 14, "title", options.title);
  double y = canvas.legend(0, 24, options.class_and_name) + 6;
  const double top = y;
  const std::string* rank = nullptr;
  for (const StreamLane& lane : lanes) {
    if (rank == nullptr || *rank != lane.rank) {
      if (rank != nullptr) y += kRankGap;
      canvas.text(kRowsLeft - 8, y + kStreamLane - 2, "rank end", lane.rank);
    }
    rank = &lane.rank;
    canvas.rect(kRowsLeft, y, x(options.span) - kRowsLeft, kStreamLane, "row");
    std::vector<StreamBar> bars = lane.bars;
    std::stable_sort(bars.begin(), bars.end(),
                     [](const StreamBar& a, const StreamBar& b) { return a.start < b.start; });
    for (std::size_t i = 0; i < bars.size(); ++i) {
      StreamBar bar = bars[i];
      std::size_t joined = 1;
      Seconds longest = bar.end - bar.start;
      for (; i + 1 < bars.size() && x(bars[i + 1].end) - x(bar.start) < kThin; ++joined) {
        const StreamBar& next = bars[++i];
        bar.end = std::max(bar.end, next.end);
        if (next.end - next.start <= longest) continue;
        longest = next.end - next.start;
        bar.classes = next.classes;
      }
      const double width = x(bar.end) - x(bar.start);
      if (width <= 0) continue;
      if (joined > 1) bar.hover = std::to_string(joined) + " short ones; the first: " + bar.hover;
      canvas.rect(x(bar.start), y, std::max(width, 0.2), kStreamLane, bar.classes, bar.hover);
    }
    y += kStreamLane + kStreamGap;
  }
  const Unit unit = time_unit(span);
  const Ticks marks = ticks(0, span / unit.size, static_cast<int>(options.width / 90));
  for (const double at : marks.at) {
    const double where = x(Seconds(at * unit.size));
    canvas.line(where, top - 4, where, y + 4, "grid");
    canvas.text(where, y + 16, "mid", marks.text(at));
  }
  canvas.text((kRowsLeft + options.width - kRowsRight) / 2, y + 32, "mid", "time, " + unit.name);
  return canvas.finish(y + 40);
}

}  // namespace polyphony::traces
