#include "traces/report/report_parts.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "shared/graph/memory.h"
#include "shared/text/quantity_text.h"
#include "traces/report/svg.h"
#include "traces/report/svg_canvas.h"

namespace polyphony::traces {
namespace {

// Pixels: a width that is easy to read on a page; the width between the margins of a phone of 400
// pixels.
constexpr double kPage = 860, kPhone = 368;
// A capacity line above this many times the peak would flatten the curves; it is not drawn.
constexpr std::int64_t kDrawnCapacity = 4;

std::string time_text(Seconds time) { return time == Seconds{} ? "–" : short_text(time); }

std::string error_text(const PartComparison& row) { return row.error ? percent(*row.error) : "–"; }

std::string plus_minus(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "±%.1f %%", 100 * ratio);
  return text;
}

}  // namespace

Table comparison_table(const Comparison& comparison, const std::string& caption) {
  const std::string critical = "rank " + std::to_string(comparison.critical.value);
  Table table{caption,
              {"", "predicted", "measured", "error", "error / step", critical + ", predicted",
               critical + ", measured", critical + ", error"},
              {},
              0,
              ""};
  table.rows.push_back({"step", short_text(comparison.predicted_step),
                        short_text(comparison.measured_step.median),
                        percent(comparison.step_error)});
  for (std::size_t p = 0; p < kParts; ++p) {
    const PartComparison& row = comparison.average[p];
    const PartComparison& there = comparison.on_critical[p];
    table.rows.push_back({table_name(row.part), time_text(row.predicted), time_text(row.measured),
                          error_text(row), percent(row.share_error), time_text(there.predicted),
                          time_text(there.measured), error_text(there)});
  }
  table.note =
      "Seconds per step and rank: averages over ranks, then the critical rank (least idle). "
      "Measured: medians of " +
      std::to_string(comparison.measured_step.count) + " steps, repeatability " +
      plus_minus(comparison.repeatability()) +
      " (half the interquartile range). Messages and parameter collectives may overlap compute.";
  if (!comparison.shared_cores.empty())
    table.note += " Shared cores: " + describe(comparison.shared_cores) + ".";
  return table;
}

Figure figure(const ChartOptions& options,
              const std::function<std::string(const ChartOptions&)>& draw,
              const std::string& caption) {
  ChartOptions wide = options, narrow = options;
  wide.width = kPage;
  narrow.width = kPhone;
  return {draw(wide), caption, draw(narrow)};
}

SideBySide gantts(const Program& program, const Timeline& predicted, const Timeline& measured) {
  GanttOptions options;
  options.width = 620;
  options.most_ranks = 16;
  options.span = std::max(predicted.makespan, measured.makespan);
  options.title = "Predicted";
  Figure left{gantt(program, predicted, options), ""};
  options.title = "Measured";
  Figure right{gantt(program, measured, options), ""};
  return {{std::move(left), std::move(right)}};
}

Figure loss_figure(
    const std::vector<std::pair<std::string, std::vector<std::pair<double, double>>>>& runs) {
  std::vector<Series> series;
  for (const auto& [label, points] : runs) series.push_back({label, points, false});
  ChartOptions options;
  options.title = "Loss";
  options.x_label = "step";
  options.y_label = "loss per token";
  options.width = 760;
  return {line_chart(series, options), ""};
}

Figure memory_figure(const Program& program, const Timeline& timeline, Bytes capacity,
                     std::size_t most_ranks) {
  const std::vector<RankMemory> memory = predict_memory(program, timeline);
  std::vector<Rank> ranks;
  for (std::size_t r = 0; r < memory.size(); ++r) ranks.push_back(Rank(r));
  std::stable_sort(ranks.begin(), ranks.end(),
                   [&](Rank a, Rank b) { return memory[a.value].peak > memory[b.value].peak; });
  ranks.resize(std::min(ranks.size(), most_ranks));
  ChartOptions options;
  options.title = "Memory over one step";
  options.width = 760;
  std::string caption =
      "Parameters, gradients and optimizer state stay resident; activations are allocated and "
      "freed.";
  if (ranks.size() < memory.size()) {
    caption = "The " + std::to_string(ranks.size()) + " ranks with the largest peaks. " + caption;
  }
  const Bytes peak = ranks.empty() ? Bytes{} : memory[ranks.front().value].peak;
  std::optional<Bytes> line;
  if (capacity.value > 0 && capacity <= kDrawnCapacity * peak) line = capacity;
  if (capacity.value > 0 && !line) {
    caption += " Largest peak " + short_text(peak) + " of " + short_text(capacity) + ".";
  }
  return {memory_chart(program, timeline, ranks, line, options), caption};
}

}  // namespace polyphony::traces
