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
  return row.contains("step_change") ? signed_whole(row.at("step_change")) + " %" : "";
}
std::string interval_text(const json& row) {
  if (!row.contains("interval90_seconds")) return "";
  const auto end = [&](std::size_t i) {
    return seconds_text(Seconds(row.at("interval90_seconds").at(i).get<double>()));
  };
  return end(0) + " to " + end(1);
}
std::string tokens_text(const json& row) {
  return count_text(static_cast<std::int64_t>(row.at("tokens_per_second_per_rank").get<double>()));
}
// Empty: not known.
std::string utilization_text(const json& row) {
  const double mfu = row.at("mfu").get<double>();
  return mfu > 0 ? percent_text(mfu) : "";
}
std::string price_text(const json& row) {
  const json& price = row.at("dollars_per_million_tokens");
  return price.is_null() ? "" : number_text(price.get<double>(), 4);
}
// "70.2 GiB of 78.5 GiB".
std::string memory_of_device(const json& answer, const json& row);
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
  return baselines.empty() ? ""
                           : "compared with the " + baselines.at(0).at("name").get<std::string>();
}

traces::Table ranking(const json& answer) {
  const json& ranked = answer.at("ranked");
  const std::vector<std::size_t> shown = rows_shown(ranked);
  const bool prices = !price_text(ranked.at(0)).empty();
  traces::Table table{
      "",
      {"rank", "step time", "90 % interval", against(answer), "tokens/s/GPU", "MFU", "memory"},
      {},
      0,
      ""};
  if (prices) table.columns.emplace_back("$ per million tokens");
  table.columns.emplace_back("layout");
  table.texts = 1;
  const auto add = [&](const std::string& place, const json& row, const std::string& words) {
    std::vector<std::string> cells{place,
                                   step_text(row),
                                   interval_text(row),
                                   change_text(row),
                                   tokens_text(row),
                                   utilization_text(row),
                                   memory_text(row)};
    if (prices) cells.push_back(price_text(row));
    cells.push_back(words);
    table.rows.push_back(std::move(cells));
  };
  for (const std::size_t i : shown)
    add(std::to_string(i + 1), ranked.at(i), ranked.at(i).at("words").get<std::string>());
  for (const json& row : answer.at("baselines"))
    add("", row, row.at("name").get<std::string>() + ": " + row.at("words").get<std::string>());
  table.note = std::to_string(shown.size()) + " of " +
               counted(static_cast<std::int64_t>(ranked.size()), "row", "rows") +
               ": the best of each shape. ~: estimated, others are simulated. The 90 % interval is "
               "that of the step time, by profile " +
               answer.at("profile").get<std::string>() + " and software stack " +
               answer.at("stack").get<std::string>() +
               ". Memory: of the fullest rank. SP: sequence parallelism; ZeRO-1, 2, 3: optimizer "
               "state, gradients, parameters sharded over DP.";
  return table;
}

// What to run, and what to measure first.
std::string decision(const json& answer) {
  const auto tied = answer.at("tied").get<std::int64_t>();
  if (tied <= 1)
    return "Row 1 is faster than every other row by more than the prediction is uncertain.";
  const std::string simplest = "row " + std::to_string(answer.at("simplest").get<int>() + 1);
  return count_text(tied) + " of " +
         counted(static_cast<std::int64_t>(answer.at("ranked").size()), "row", "rows") +
         " do not differ from row 1 within what the profile knows. The simplest of them within 2 % "
         "of "
         "the best is " +
         simplest + ": " +
         answer.at("ranked")
             .at(answer.at("simplest").get<std::size_t>())
             .at("words")
             .get<std::string>() +
         ". Measure a few steps of it before a long run.";
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
                    row->at("words").get<std::string>(),
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
        step_text(row) + ", " + memory_text(row) + ": " + row.at("words").get<std::string>();
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
  options.y_label = "memory of the fullest rank, " + memory;
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
          " rows. Filled: simulated; hollow: estimated. Dashed line: no row is both faster and "
          "smaller. Diamonds: the baselines. Horizontal bars, where they fit: by how much a row of "
          "the "
          "table may differ from row 1 (90 % interval).");
}

std::string memory_of_device(const json& answer, const json& row) {
  const json& device = answer.at("device_memory_bytes");
  return memory_text(row) +
         (device.is_null() ? "" : " of " + bytes_text(Bytes(device.get<std::int64_t>())));
}

traces::Section which_layout(const json& answer) {
  traces::Section section{"Ranking", {traces::Paragraph{decision(answer)}, ranking(answer)}};
  if (answer.contains("question"))
    if (const std::string accuracy = answer.at("question").value("accuracy", ""); !accuracy.empty())
      section.blocks.emplace_back(traces::Paragraph{"How accurate: " + accuracy});
  for (const json& line : answer.at("notes"))
    section.blocks.emplace_back(traces::Paragraph{line.get<std::string>()});
  return section;
}

// How far the search went.
traces::Section how_it_was_found(const json& answer) {
  const auto number = [&](const char* key) {
    return count_text(static_cast<std::int64_t>(answer.at(key).get<double>()));
  };
  traces::Section section{
      "How it was searched",
      {traces::Paragraph{
          number("combinations") + " combinations: " + number("legal") +
          " legal ones checked one by one, " + number("too_large") + " need too much memory, " +
          number("screened_by_bound") + " are ruled out by a lower bound of their step time; " +
          number("estimated") + " estimated, " + number("simulated") + " simulated."}}};
  for (const auto& [placement, gap] : answer.at("gaps").items())
    section.blocks.emplace_back(traces::Paragraph{
        placement + (gap.get<double>() > 0
                         ? ": a layout that the search did not reach could be up to " +
                               percent_text(gap.get<double>()) + " faster than the best row."
                         : ": no layout of the searched combinations has a smaller estimate.")});
  for (const json& line : answer.at("why"))
    section.blocks.emplace_back(traces::Paragraph{line.get<std::string>()});
  return section;
}

std::vector<traces::Fact> facts_of(const json& answer) {
  const json& ranked = answer.at("ranked");
  std::vector<traces::Fact> facts;
  if (ranked.empty()) return facts;
  const json& best = ranked.at(0);
  facts.push_back({step_text(best), interval_text(best).empty()
                                        ? "step time of row 1"
                                        : "step time of row 1; 90 %: " + interval_text(best)});
  facts.push_back({tokens_text(best), "tokens/s/GPU"});
  if (const std::string mfu = utilization_text(best); !mfu.empty()) facts.push_back({mfu, "MFU"});
  facts.push_back({memory_of_device(answer, best), "memory of the fullest rank"});
  if (const std::string price = price_text(best); !price.empty())
    facts.push_back({price + " $", "per million tokens"});
  if (best.contains("step_change"))
    facts.push_back({signed_whole(best.at("step_change")) + " %", against(answer)});
  return facts;
}

// "h100.json; vision 631M + language 7.6B; 8 nodes × 8 H100; …".
std::string subtitle(const json& answer, const std::string& question) {
  std::string text = question;
  if (answer.contains("question"))
    for (const char* key : {"model", "cluster", "data", "software"})
      text += "; " + answer.at("question").value(key, "");
  return text;
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
          {"Where the step time goes", {breakdown(answer)}},
          {"Time and memory", {time_and_memory(answer)}},
          how_it_was_found(answer)};
}

traces::Report answer_page(const json& answer, const std::string& question) {
  const bool varied = answer.contains("questions");
  traces::Report page{varied ? "Where the best layout changes" : "Which parallel layout is fastest",
                      subtitle(answer, question),
                      {},
                      answer_sections(answer),
                      "Made by `polyphony sweep`; nothing is loaded from elsewhere."};
  if (!varied) page.facts = facts_of(answer);
  return page;
}

}  // namespace polyphony::sim
