#include "sim/pages/sweep_figures.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "shared/text/figure_text.h"
#include "shared/text/json_form.h"
#include "traces/report/report_parts.h"
#include "traces/report/svg_canvas.h"

namespace polyphony::sim {
namespace {

using Row = const SearchedRow*;

// Parts of a step in the order in which a bar shows them.
const std::vector<std::pair<std::string, std::string>>& parts_of_bars() {
  static const std::vector<std::pair<std::string, std::string>> parts{
      {"forward", "forward"},
      {"backward", "backward"},
      {"recompute", "recompute"},
      {"optimizer", "optimizer"},
      {"exchange", "messages between stages"},
      {"exchange tint", "messages between grids"},
      {"reduce tint", "sharded parameters"},
      {"reduce", "sums of gradients"},
      {"wait", "imbalance of ranks"},
      {"wait tint", "bubble"},
      {"wait tint", "idle"}};
  return parts;
}

// Of a part of a row's step; 0 where nothing was said of it.
double seconds_of(const SearchedRow& row, const std::string& part) {
  const auto found = row.seconds.find(part);
  return found == row.seconds.end() ? 0 : found->second;
}

// No row is both faster and smaller.
std::vector<std::pair<double, double>> front_of(std::vector<std::pair<double, double>> points) {
  std::sort(points.begin(), points.end());
  std::vector<std::pair<double, double>> front;
  for (const auto& point : points)
    if (front.empty() || point.second < front.back().second) front.push_back(point);
  return front;
}

}  // namespace

std::string step_text(const SearchedRow& row) {
  return (row.simulated ? "" : "~") + seconds_text(row.step);
}
std::string signed_whole(double ratio) {
  const double whole = std::round(100 * ratio);
  return (whole > 0 ? "+" : "") + number_text(whole == 0 ? 0 : whole, 0);  // no -0
}

std::vector<std::size_t> best_of_each(const std::vector<SearchedRow>& ranked) {
  std::set<Placement> placements;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < ranked.size(); ++i)
    if (placements.insert(ranked[i].placement).second) rows.push_back(i);
  return rows;
}

std::vector<std::size_t> rows_shown(const std::vector<SearchedRow>& ranked) {
  const std::vector<std::size_t> best = best_of_each(ranked);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < ranked.size(); ++i)
    if ((ranked[i].leading && rows.size() < kMostRows) ||
        std::find(best.begin(), best.end(), i) != best.end())
      rows.push_back(i);
  return rows;
}

traces::Figure breakdown_figure(const Searched& answer) {
  std::vector<Row> rows;
  for (const std::size_t i : best_of_each(answer.ranked)) rows.push_back(&answer.ranked[i]);
  for (const SearchedRow& row : answer.baselines) rows.push_back(&row);
  std::vector<std::pair<std::string, std::string>> parts;
  for (const auto& part : parts_of_bars())
    if (std::any_of(rows.begin(), rows.end(),
                    [&](Row row) { return seconds_of(*row, part.second) > 0; }))
      parts.push_back(part);
  double largest = 0;
  for (const Row row : rows) largest = std::max(largest, row->step.count());
  const auto [unit, size] = traces::time_unit(largest);
  std::vector<traces::Bar> bars;
  for (const Row row : rows) {
    traces::Bar bar{
        row->name.empty() ? name(row->placement) : row->name,
        step_text(*row) +
            (row->change.value_or(0) != 0 ? ", " + signed_whole(*row->change) + " %" : ""),
        row->words,
        {}};
    for (const auto& part : parts) bar.parts.push_back(seconds_of(*row, part.second) / size);
    bars.push_back(std::move(bar));
  }
  traces::ChartOptions options;
  options.x_label = "step, " + unit;
  return traces::figure(
      options, [&](const traces::ChartOptions& o) { return traces::bar_chart(parts, bars, o); },
      "The best layout of each placement and the baselines, on the rank that idles least. "
      "Collectives inside compute (tensor, context and expert parallel) are part of forward and "
      "backward, and so is recomputation inside a backward. Communication counts as far as the "
      "rank "
      "waits for it.");
}

traces::Figure time_and_memory_figure(const Searched& answer) {
  const std::vector<SearchedRow>& ranked = answer.ranked;
  double slowest = 0, largest = 0;
  for (const std::vector<SearchedRow>* rows : {&ranked, &answer.baselines})
    for (const SearchedRow& row : *rows) {
      slowest = std::max(slowest, row.step.count());
      largest = std::max(largest, static_cast<double>(row.memory.value));
    }
  const auto [time, second] = traces::time_unit(slowest);
  const auto [memory, byte] = traces::bytes_unit(largest);
  const std::vector<std::string> kinds = enum_names<Placement>();
  const auto mark = [&, second = second, byte = byte](const SearchedRow& row) {
    traces::Mark made;
    made.x = row.step.count() / second;
    made.y = static_cast<double>(row.memory.value) / byte;
    made.kind = static_cast<std::size_t>(row.placement);
    made.hollow = !row.simulated;
    made.hover = step_text(row) + ", " + bytes_text(row.memory) + ": " + row.words;
    return made;
  };
  std::vector<traces::Mark> marks;
  std::vector<std::pair<double, double>> points;
  const double best = ranked.front().step.count();
  const std::vector<std::size_t> shown = rows_shown(ranked);
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    traces::Mark made = mark(ranked[i]);
    made.hover = "#" + std::to_string(i + 1) + "  " + made.hover;
    points.emplace_back(made.x, made.y);
    if (ranked[i].tied && ranked[i].difference &&
        std::find(shown.begin(), shown.end(), i) != shown.end()) {
      const auto& [low, high] = *ranked[i].difference;
      made.interval = {(best + low.count()) / second, (best + high.count()) / second};
    }
    marks.push_back(std::move(made));
  }
  for (const SearchedRow& row : answer.baselines) {
    traces::Mark made = mark(row);
    made.label = row.name;
    marks.push_back(std::move(made));
  }
  traces::ChartOptions options;
  options.x_label = "step, " + time;
  options.y_label = "memory of the fullest rank, " + memory;
  options.height = 380;
  options.y_from_zero = false;
  if (answer.device && static_cast<double>(answer.device->value) < 1.5 * largest)
    options.level = {static_cast<double>(answer.device->value) / byte,
                     "device " + bytes_text(*answer.device)};
  return traces::figure(
      options,
      [&](const traces::ChartOptions& o) {
        return traces::scatter_chart(kinds, marks, front_of(points), o);
      },
      "All " + std::to_string(ranked.size()) +
          " rows. Filled: simulated; hollow: estimated. Dashed line: no row is both faster and "
          "smaller. Diamonds: the baselines. Horizontal bars, where they fit: by how much a row of "
          "the "
          "table may differ from row 1 (90 % interval).");
}

}  // namespace polyphony::sim
