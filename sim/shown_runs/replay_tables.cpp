#include "sim/shown_runs/replay_tables.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "shared/text/figure_text.h"

namespace polyphony::sim {
namespace {

// Shorter shares of the path are summed up as "others".
constexpr double kWorthARow = 0.005;

std::string signed_seconds(Seconds time) {
  return (time.count() < 0 ? "-" : "+") + seconds_text(Seconds(std::abs(time.count())));
}

}  // namespace

std::vector<std::string> difference_row(const std::string& what, Seconds before,
                                        const std::optional<Seconds>& after) {
  std::vector<std::string> row{what, seconds_text(before)};
  if (!after) return row;
  row.push_back(seconds_text(*after));
  row.push_back(signed_seconds(*after - before));
  row.push_back(before.count() > 0 ? signed_percent_text(*after / before - 1) : "");
  return row;
}

std::string measured_line(const ReplayAnswer& answer) {
  return counted(static_cast<std::int64_t>(answer.measured.count), "step", "steps") +
         ", measured " + seconds_text(answer.measured.median) + " ±" +
         percent_text(answer.measured.repeatability()) + "; replayed unchanged " +
         seconds_text(answer.before.steps.median) + " (" +
         signed_percent_text(answer.replay_error) + ")";
}

std::string certainty_line(const ReplayAnswer& answer) {
  const SecondsInterval at = interval(answer.belief);
  const double model = std::sqrt(std::max(
      0.0, answer.belief.residual * answer.belief.residual - answer.jitter * answer.jitter));
  return "90 % interval " + seconds_text(at.low) + " to " + seconds_text(at.high) +
         "; half of it: " + percent_text(answer.belief.parameters()) + " from parameters, " +
         percent_text(model) + " from what the model leaves out, " + percent_text(answer.jitter) +
         " from jitter (profile " + answer.profile + ")";
}

ReplayTable steps_table(const ReplayAnswer& answer) {
  ReplayTable table{{"", "replayed"}, {}};
  const bool both = answer.after.has_value();
  if (both) table.columns = {"", "before", "after", "difference", ""};
  const auto add = [&](const std::string& what, const auto& of) {
    table.rows.push_back(difference_row(
        what, of(answer.before), both ? std::optional<Seconds>(of(*answer.after)) : std::nullopt));
  };
  add("step (median)", [](const ReplayedRun& run) { return run.steps.median; });
  add("step shown", [](const ReplayedRun& run) { return run.timeline.makespan; });
  std::vector<traces::PartTimes> ranks = answer.before.parts;
  if (both) ranks.insert(ranks.end(), answer.after->parts.begin(), answer.after->parts.end());
  for (const traces::Part part : traces::parts_shown(ranks)) {
    const auto p = static_cast<std::size_t>(part);
    add(std::string("  ") + traces::table_name(part),
        [&](const ReplayedRun& run) { return traces::mean(run.parts)[p]; });
    if (part != traces::Part::idle) continue;
    for (std::size_t i = 0; i < traces::kIdles; ++i) {
      const Seconds most =
          std::max(answer.before.idle[i], both ? answer.after->idle[i] : Seconds{});
      if (most.count() > 0)
        add(std::string("    ") + traces::name(static_cast<traces::Idle>(i)),
            [&](const ReplayedRun& run) { return run.idle[i]; });
    }
  }
  std::vector<std::string> memory{"largest memory (modeled)",
                                  bytes_text(answer.before.peak_memory)};
  if (both) memory.push_back(bytes_text(answer.after->peak_memory));
  table.rows.push_back(std::move(memory));
  return table;
}

ReplayTable differences_table(const std::vector<PathDifference>& differences, Seconds step) {
  ReplayTable table{{"class", "before", "after", "difference", ""}, {}};
  PathDifference rest{"others", {}, {}};
  const Seconds bar = kWorthARow * step;
  for (const PathDifference& row : differences) {
    if (std::max(row.before, row.after) < bar) {
      rest.before += row.before;
      rest.after += row.after;
    } else {
      table.rows.push_back(difference_row(row.label, row.before, row.after));
    }
  }
  if (rest.before + rest.after > Seconds{})
    table.rows.push_back(difference_row(rest.label, rest.before, rest.after));
  return table;
}

ReplayTable path_table(const ReplayedRun& run) {
  std::map<std::string, std::pair<Seconds, std::uint32_t>> by_label;
  for (const PathStretch& stretch : run.path) {
    by_label[stretch.label].first += stretch.end - stretch.start;
    by_label[stretch.label].second += stretch.ops;
  }
  std::vector<std::pair<std::string, std::pair<Seconds, std::uint32_t>>> rows(by_label.begin(),
                                                                              by_label.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  ReplayTable table{{"class", "on the path", "share of step", "ops"}, {}};
  for (const auto& [label, what] : rows)
    table.rows.push_back({label, seconds_text(what.first),
                          percent_text(what.first / run.timeline.makespan),
                          count_text(what.second)});
  return table;
}

ReplayTable mixture_table(const traces::Mixture& mixture) {
  ReplayTable table{{"class", "share of work", "measured", "scaled", "modeled"}, {}};
  const auto sum = [](const std::array<Seconds, traces::kOrigins>& by) {
    return by[0] + by[1] + by[2];
  };
  const Seconds all = sum(traces::total(mixture));
  const auto add = [&](const std::string& label, const std::array<Seconds, traces::kOrigins>& by) {
    const Seconds own = sum(by);
    std::vector<std::string> row{label, all.count() > 0 ? percent_text(own / all) : "-"};
    for (const Seconds time : by)
      row.push_back(own.count() > 0 ? percent_text(time / own, 0) : "-");
    table.rows.push_back(std::move(row));
  };
  for (const auto& [label, by] : mixture) add(label, by);
  add("all", traces::total(mixture));
  return table;
}

}  // namespace polyphony::sim
