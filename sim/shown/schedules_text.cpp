#include "sim/shown/schedules_text.h"

#include <algorithm>
#include <sstream>

#include "sim/console/console.h"
#include "traces/report/svg.h"

namespace polyphony::sim {
namespace {

std::string worst_and_mean(const std::vector<double>& shares) {
  double sum = 0, worst = 0;
  for (const double share : shares) {
    sum += share;
    worst = std::max(worst, share);
  }
  return percent_text(sum / static_cast<double>(shares.size())) + ", " + percent_text(worst);
}
Bytes peak(const ComparedSchedule& row) {
  return *std::max_element(row.table.peak.begin(), row.table.peak.end());
}
std::string above(Seconds makespan, Seconds bound) {
  return signed_percent_text(bound > Seconds(0) ? std::max(0.0, makespan / bound - 1) : 0);
}
// Of drawn batches: the 5th and the 95th percentile.
std::pair<Seconds, Seconds> interval(const std::vector<Seconds>& drawn) {
  const auto at = [&](double share) {
    return drawn[static_cast<std::size_t>(share * static_cast<double>(drawn.size() - 1) + 0.5)];
  };
  return {at(0.05), at(0.95)};
}

}  // namespace

std::string comparison_text(const ScheduleComparison& comparison, const CompareOptions& options) {
  std::vector<std::string> header{"schedule", "makespan"};
  if (options.draws > 0) header.push_back("90 % of\nrandom batches");
  header.insert(header.end(),
                {"idle time: mean,\nworst rank", "peak\nactivations", "above bound\nof its stages",
                 "above bound\nof any stages", "setting"});
  Table table(header);
  std::string refused;
  for (const ComparedSchedule& row : comparison.rows) {
    if (!row.refusal.empty()) {
      refused += row.name + ": " + row.refusal + "\n";
      continue;
    }
    std::vector<std::string> cells{row.name, seconds_text(row.table.makespan)};
    if (options.draws > 0) {
      cells.push_back("");
      if (!row.drawn.empty()) {
        const auto [low, high] = interval(row.drawn);
        cells.back() = seconds_text(low) + " to " + seconds_text(high);
      }
    }
    cells.insert(cells.end(), {worst_and_mean(bubbles(row.table)),
                               bytes_text(peak(row)) + (row.fits ? "" : " (too much)"),
                               above(row.table.makespan, row.bound),
                               above(row.table.makespan, comparison.bound), row.setting});
    table.add(cells);
  }
  return table.text(screen_columns()) + refused + "lower bound of any stages on " +
         counted(options.ranks, "rank", "ranks") + ": " + seconds_text(comparison.bound) + "\n";
}

std::string comparison_csv(const ScheduleComparison& comparison) {
  std::ostringstream csv;
  csv << "schedule,setting,makespan_seconds,draws_low,draws_high,bound_seconds,"
         "any_bound_seconds,mean_bubble,worst_bubble,peak_activation_bytes,fits,rank_bubbles,"
         "rank_peak_activation_bytes,refusal\n";
  for (const ComparedSchedule& row : comparison.rows) {
    const auto text = [](const std::string& cell) {
      return cell.find(',') == std::string::npos ? cell : "\"" + cell + "\"";
    };
    csv << text(row.name) << "," << text(row.setting) << ",";
    if (!row.refusal.empty()) {
      csv << ",,,,,,,,,,," << text(row.refusal) << "\n";
      continue;
    }
    double sum = 0, worst = 0;
    std::ostringstream rests, peaks;  // by rank
    for (const double share : bubbles(row.table)) {
      sum += share;
      worst = std::max(worst, share);
      rests << (rests.tellp() > 0 ? " " : "") << share;
    }
    for (const Bytes bytes : row.table.peak) peaks << (peaks.tellp() > 0 ? " " : "") << bytes.value;
    csv << row.table.makespan.count() << ",";
    if (row.drawn.empty()) {
      csv << ",,";
    } else {
      const auto [low, high] = interval(row.drawn);
      csv << low.count() << "," << high.count() << ",";
    }
    csv << row.bound.count() << "," << comparison.bound.count() << ","
        << sum / static_cast<double>(row.table.busy.size()) << "," << worst << ","
        << peak(row).value << "," << (row.fits ? "true" : "false") << "," << rests.str() << ","
        << peaks.str() << ",\n";
  }
  return csv.str();
}

std::string comparison_chart(const ScheduleComparison& comparison) {
  std::vector<traces::OrdersRow> rows;
  for (const ComparedSchedule& row : comparison.rows)
    if (row.refusal.empty())
      rows.push_back({row.name + (row.setting.empty() ? "" : ", " + row.setting) + ": " +
                          seconds_text(row.table.makespan),
                      &row.costs, &row.table});
  return traces::svg_file(traces::orders_chart(rows), traces::Theme::light);
}

std::string ordered_text(const OrderedStep& step) {
  Table table({"rank", "stages", "actions", "saved activations", "peak memory"});
  for (std::size_t p = 0; p < step.ranks.size(); ++p) {
    const OrderedRank& rank = step.ranks[p];
    table.add({std::to_string(p), rank.stages, std::to_string(rank.actions),
               std::to_string(rank.tapes), bytes_text(rank.peak)});
  }
  return paragraph(step.words) +
         paragraph("Verified. Step " + seconds_text(step.figures.step) +
                   ". Longest idle time of a rank: " + std::to_string(step.bubble) +
                   " units, where F, I and W take one unit and B two.") +
         "\n" + table.text(screen_columns());
}

std::string ordered_chart(const OrderedStep& step) {
  return traces::svg_file(
      traces::gantt(step.prediction.program, step.prediction.timeline, {.title = step.layout}),
      traces::Theme::light);
}

}  // namespace polyphony::sim
