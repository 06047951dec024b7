#include "sim/pages/sweep_page.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "shared/model/layout.h"
#include "shared/text/figure_text.h"
#include "shared/text/json_form.h"
#include "sim/pages/vary_page.h"
#include "traces/report/report_parts.h"
#include "traces/report/svg_canvas.h"

namespace polyphony::sim {
namespace {

using nlohmann::json;
using Row = const json*;

constexpr std::size_t kMostRows = 12;

std::string step_text(const json& row) {
  return (row.at("simulated").get<bool>() ? "" : "~") +
         seconds_text(Seconds(row.at("step_seconds").get<double>()));
}
std::string change_text(const json& row) {
  if (!row.contains("step_change")) return "";
  std::string text = signed_whole(row.at("step_change")) + " %";
  if (row.contains("step_change90"))
    text += " (" + signed_whole(row.at("step_change90").at(0)) + " to " +
            signed_whole(row.at("step_change90").at(1)) + ")";
  return text;
}
std::string memory_text(const json& row) {
  return bytes_text(Bytes(row.at("peak_memory_bytes").get<std::int64_t>()));
}

// Positions of the best of each placement.
std::vector<std::size_t> best_of_each(const json& ranked) {
  std::set<std::string> placements;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < ranked.size(); ++i)
    if (placements.insert(ranked.at(i).at("placement").get<std::string>()).second)
      rows.push_back(i);
  return rows;
}

// Those that differ at first sight, and the best of each placement.
std::vector<std::size_t> rows_shown(const json& ranked) {
  const std::vector<std::size_t> best = best_of_each(ranked);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < ranked.size(); ++i)
    if ((ranked.at(i).at("leading").get<bool>() && rows.size() < kMostRows) ||
        std::find(best.begin(), best.end(), i) != best.end())
      rows.push_back(i);
  return rows;
}

std::string against(const json& answer) {
  const json& baselines = answer.at("baselines");
  return baselines.empty() ? "" : "vs " + baselines.at(0).at("name").get<std::string>();
}

traces::Table ranking(const json& answer) {
  traces::Table table{"", {"#", "step", against(answer), "memory", "layout"}, {}, 0, ""};
  table.texts = 1;
  const json& ranked = answer.at("ranked");
  const bool ties = answer.at("tied").get<int>() > 1;
  for (const std::size_t i : rows_shown(ranked)) {
    const json& row = ranked.at(i);
    table.rows.push_back({std::to_string(i + 1) + (ties && row.at("tied").get<bool>() ? " =" : ""),
                          step_text(row), change_text(row), memory_text(row),
                          row.at("brief").get<std::string>()});
  }
  for (const json& row : answer.at("baselines"))
    table.rows.push_back(
        {"–", step_text(row), change_text(row), memory_text(row),
         row.at("name").get<std::string>() + ": " + row.at("brief").get<std::string>()});
  table.note = "The best of each shape, of " +
               counted(static_cast<std::int64_t>(ranked.size()), "row", "rows") +
               ". ~ estimated; in brackets the 90 % interval of the change; memory of the worst "
               "stage. ±" +
               percent_text(answer.at("stated_error").get<double>(), 0) + " by profile " +
               answer.at("profile").get<std::string>() + ", stack " +
               answer.at("stack").get<std::string>() + ".";
  if (ties)
    table.note +=
        " = tied with the first: what the profile does not know could turn their order "
        "round; the simplest of them is " +
        std::to_string(answer.at("simplest").get<int>() + 1) + ".";
  return table;
}

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
double seconds_of(const json& row, const std::string& part) {
  return row.contains("breakdown_seconds") ? row["breakdown_seconds"].value(part, 0.0) : 0;
}

traces::Figure breakdown(const json& answer) {
  std::vector<Row> rows;
  for (const std::size_t i : best_of_each(answer.at("ranked")))
    rows.push_back(&answer.at("ranked").at(i));
  for (const json& row : answer.at("baselines")) rows.push_back(&row);
  std::vector<std::pair<std::string, std::string>> parts;
  for (const auto& part : parts_of_bars())
    if (std::any_of(rows.begin(), rows.end(),
                    [&](Row row) { return seconds_of(*row, part.second) > 0; }))
      parts.push_back(part);
  double largest = 0;
  for (const Row row : rows) largest = std::max(largest, row->at("step_seconds").get<double>());
  const auto [unit, size] = traces::time_unit(largest);
  std::vector<traces::Bar> bars;
  for (const Row row : rows) {
    traces::Bar bar{row->value("name", row->at("placement").get<std::string>()),
                    step_text(*row) + (row->value("step_change", 0.0) != 0
                                           ? ", " + signed_whole(row->at("step_change")) + " %"
                                           : ""),
                    row->at("brief").get<std::string>(),
                    {}};
    for (const auto& part : parts) bar.parts.push_back(seconds_of(*row, part.second) / size);
    bars.push_back(std::move(bar));
  }
  traces::ChartOptions options;
  options.x_label = "step, " + unit;
  return traces::figure(
      options, [&](const traces::ChartOptions& o) { return traces::bar_chart(parts, bars, o); },
      "The best of each placement, and what people run without a search; on the rank that idles "
      "least. Collectives inside compute (tensor, context and expert parallel) are part of forward "
      "and backward; what is recomputed inside a backward is part of it. Communication as far as "
      "the rank waits for it.");
}

// No row is both faster and smaller.
std::vector<std::pair<double, double>> front_of(std::vector<std::pair<double, double>> points) {
  std::sort(points.begin(), points.end());
  std::vector<std::pair<double, double>> front;
  for (const auto& point : points)
    if (front.empty() || point.second < front.back().second) front.push_back(point);
  return front;
}

traces::Figure time_and_memory(const json& answer) {
  const json& ranked = answer.at("ranked");
  double slowest = 0, largest = 0;
  for (const json* rows : {&ranked, &answer.at("baselines")})
    for (const json& row : *rows) {
      slowest = std::max(slowest, row.at("step_seconds").get<double>());
      largest = std::max(largest, row.at("peak_memory_bytes").get<double>());
    }
  const auto [time, second] = traces::time_unit(slowest);
  const auto [memory, byte] = traces::bytes_unit(largest);
  const std::vector<std::string> kinds = enum_names<Placement>();
  const auto mark = [&, second = second, byte = byte](const json& row) {
    traces::Mark made;
    made.x = row.at("step_seconds").get<double>() / second;
    made.y = row.at("peak_memory_bytes").get<double>() / byte;
    made.kind = static_cast<std::size_t>(
        std::find(kinds.begin(), kinds.end(), row.at("placement").get<std::string>()) -
        kinds.begin());
    made.hollow = !row.at("simulated").get<bool>();
    made.hover =
        step_text(row) + ", " + memory_text(row) + ": " + row.at("brief").get<std::string>();
    return made;
  };
  std::vector<traces::Mark> marks;
  std::vector<std::pair<double, double>> points;
  const double best = ranked.at(0).at("step_seconds").get<double>();
  const std::vector<std::size_t> shown = rows_shown(ranked);
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    traces::Mark made = mark(ranked.at(i));
    made.hover = "#" + std::to_string(i + 1) + "  " + made.hover;
    points.emplace_back(made.x, made.y);
    if (ranked.at(i).at("tied").get<bool>() && ranked.at(i).contains("difference90_seconds") &&
        std::find(shown.begin(), shown.end(), i) != shown.end()) {
      const json& difference = ranked.at(i).at("difference90_seconds");
      made.interval = {(best + difference.at(0).get<double>()) / second,
                       (best + difference.at(1).get<double>()) / second};
    }
    marks.push_back(std::move(made));
  }
  for (const json& row : answer.at("baselines")) {
    traces::Mark made = mark(row);
    made.label = row.at("name").get<std::string>();
    marks.push_back(std::move(made));
  }
  traces::ChartOptions options;
  options.x_label = "step, " + time;
  options.y_label = "memory of the worst stage, " + memory;
  options.height = 380;
  options.y_from_zero = false;
  if (const json& device = answer.at("device_memory_bytes");
      !device.is_null() && device.get<double>() < 1.5 * largest)
    options.level = {device.get<double>() / byte,
                     "device " + bytes_text(Bytes(device.get<std::int64_t>()))};
  return traces::figure(
      options,
      [&](const traces::ChartOptions& o) {
        return traces::scatter_chart(kinds, marks, front_of(points), o);
      },
      "All " + std::to_string(ranked.size()) +
          " rows. Filled: simulated; hollow: estimated. Dashed: no row is both faster and smaller. "
          "Bars: of rows of the table that are tied with the first the 90 % interval of how much "
          "they "
          "differ from it, where an end of it is in sight. Diamonds: what people run without a "
          "search.");
}

traces::Section which_layout(const json& answer) {
  traces::Section section{"Ranking", {ranking(answer)}};
  for (const auto& [placement, gap] : answer.at("gaps").items())
    section.blocks.emplace_back(traces::Paragraph{
        placement + (gap.get<double>() > 0
                         ? ": a layout not looked at could be up to " +
                               percent_text(gap.get<double>()) + " faster"
                         : ": no combination of the lists has a smaller estimate")});
  for (const char* key : {"why", "notes"})
    for (const json& line : answer.at(key))
      section.blocks.emplace_back(traces::Paragraph{line.get<std::string>()});
  return section;
}

std::vector<traces::Fact> facts_of(const json& answer) {
  const json& ranked = answer.at("ranked");
  std::vector<traces::Fact> facts;
  if (!ranked.empty()) {
    facts.push_back({step_text(ranked.at(0)), "best step"});
    if (ranked.at(0).contains("step_change"))
      facts.push_back({signed_whole(ranked.at(0).at("step_change")) + " %", against(answer)});
    facts.push_back({memory_text(ranked.at(0)), "its worst stage"});
    facts.push_back({count_text(answer.at("tied").get<std::int64_t>()), "layouts tied"});
  }
  facts.push_back({count_text(static_cast<std::int64_t>(answer.at("combinations").get<double>())),
                   "combinations"});
  return facts;
}

}  // namespace

std::string signed_whole(const json& ratio) {
  const double whole = std::round(100 * ratio.get<double>());
  return (whole > 0 ? "+" : "") + number_text(whole == 0 ? 0 : whole, 0);  // no -0
}

std::vector<traces::Section> answer_sections(const json& answer) {
  if (answer.contains("questions")) return vary_sections(answer);
  if (answer.at("ranked").empty())
    return {{"Which layout", {traces::Paragraph{"No layout fits."}}}};
  return {which_layout(answer),
          {"Where the step goes", {breakdown(answer)}},
          {"Time and memory", {time_and_memory(answer)}}};
}

traces::Report answer_page(const json& answer, const std::string& question) {
  const bool varied = answer.contains("questions");
  traces::Report page{varied ? "Where the best layout changes" : "Which layout",
                      question,
                      {},
                      answer_sections(answer),
                      "Made by `polyphony sweep`; nothing is loaded from elsewhere."};
  if (!varied) page.facts = facts_of(answer);
  return page;
}

}  // namespace polyphony::sim
