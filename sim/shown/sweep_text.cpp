#include "sim/shown/sweep_text.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>
#include <set>

#include "sim/console/console.h"
#include "sim/shown/profile_text.h"
#include "sim/sweep/baselines.h"
#include "sim/sweep/leading.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {
namespace {

constexpr std::size_t kMostRanges = 4;  // of tied rows; more are given by their number

std::string count(double number) { return count_text(static_cast<std::int64_t>(number)); }

// "-27 %".
std::string change_text(const Candidate& c) {
  if (!c.change) return "";
  const double whole = std::round(100 * c.change->ratio);
  return (whole > 0 ? "+" : "") + number_text(whole == 0 ? 0 : whole, 0) + " %";  // no -0
}

// Three significant digits: "20.1", "812", "1.34".
std::string three_digits(double value) {
  return number_text(value, value >= 100 ? 0 : value >= 10 ? 1 : 2);
}

// "20.1 to 31.2 s", in the unit of its lower end.
std::string interval_text(const Candidate& c) {
  if (!c.belief) return "";
  const SecondsInterval of = interval(*c.belief);
  const double low = of.low.count();
  const auto [unit, size] = low >= 1      ? std::pair(" s", 1.0)
                            : low >= 1e-3 ? std::pair(" ms", 1e-3)
                                          : std::pair(" us", 1e-6);
  return three_digits(low / size) + " to " + three_digits(of.high.count() / size) + unit;
}

// "1 to 13, 15"; nothing where that is long.
std::optional<std::string> ranges_text(const std::vector<std::size_t>& rows) {
  std::string text;
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = i + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    if (++ranges > kMostRanges) return {};
    text += (text.empty() ? "" : end == rows.size() ? " and " : ", ") + std::to_string(rows[i] + 1);
    if (end - i == 2) text += " and " + std::to_string(rows[end - 1] + 1);
    if (end - i > 2) text += " to " + std::to_string(rows[end - 1] + 1);
    i = end;
  }
  return text;
}

std::vector<std::size_t> tied_rows(const Sweep& result) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < result.ranked.size(); ++i)
    if (result.ranked[i].tied) rows.push_back(i);
  return rows;
}

// The row to measure next to the simplest: the first other one that is tied and differs at first
// sight.
std::optional<std::size_t> rival(const Sweep& result, const std::vector<bool>& leading) {
  for (const std::size_t i : tied_rows(result))
    if (i != result.simplest && (leading[i] || i == 0)) return i;
  return {};
}

void print_decision(const Sweep& result, const std::vector<bool>& leading) {
  if (result.tied <= 1) {
    if (result.ranked.size() > 1)
      std::cout << paragraph(
          "Row 1 is faster than every other row by more than the prediction is uncertain.");
    return;
  }
  std::vector<std::size_t> others = tied_rows(result);
  std::erase(others, 0);
  const auto ranges = ranges_text(others);
  const std::string simplest = std::to_string(result.simplest + 1);
  std::string text =
      (ranges ? (others.size() == 1 ? "Row " + *ranges + " is" : "Rows " + *ranges + " are") +
                    " tied with row 1"
              : count_text(static_cast<std::int64_t>(result.tied)) + " of " +
                    count_text(static_cast<std::int64_t>(result.ranked.size())) +
                    " rows are tied with the best") +
      ": the 90 % interval of the difference in step time contains zero. (Of published pairs such "
      "intervals contained 70 %, so that more rows may be tied than listed; similar layouts share "
      "most errors, so that a near row may not be.) Row " +
      simplest + " is the simplest of those within 2 % of the best.";
  if (const auto other = rival(result, leading))
    text +=
        " To decide, measure a few steps of rows " + simplest + " and " +
        std::to_string(*other + 1) +
        ": save each (--save-row ROW --out row.json), and run it (polyphony run row.json --steps "
        "15).";
  const bool by_parameter = !result.tied_by.empty() && result.tied_by.front().first != kModelMisses;
  if (by_parameter)
    text += " Their order depends most on " + result.tied_by.front().first + " (" +
            percent_text(result.tied_by.front().second, 0) +
            " of the uncertainty): a profile measured on this cluster settles it.";
  std::cout << paragraph(text);
}

const char* baseline_meaning(const std::string& name) {
  if (name == kOwnLayout)
    return "layout of the file: the one that the scenario states; the others are compared with it.";
  return name == "rule of thumb"
             ? "rule of thumb: the least model parallelism that fits (TP inside a node, then PP), "
               "ZeRO-1, one sample a microbatch, 1F1B."
             : "encoder in stage 0: by the same rule among pipelines of two or more stages, with "
               "every "
               "encoder layer in the first one.";
}

// Why rows are missing between and after those that are printed.
std::string left_out_text(bool alike, bool later, std::size_t most) {
  std::string text = "Rows left out";
  if (alike)
    text +=
        " differ from an earlier one only in details, such as recomputation or ZeRO groups "
        "(--all prints them)";
  if (later)
    text += std::string(alike ? ", or" : "") + " come after the first " + std::to_string(most) +
            " (--top)";
  return text + ". The best row of each placement is always printed.";
}

// The columns of numbers: those that are known.
struct Columns {
  bool change = false, own = false, interval = false, utilization = false, price = false;

  explicit Columns(const Sweep& result) {
    change = !result.baselines.empty();
    own = change && result.baselines.front().name == kOwnLayout;
    for (const Candidate& c : result.ranked) {
      interval = interval || c.belief;
      utilization = utilization || c.figures.model_flops_utilization > 0;
      price = price || c.figures.dollars_per_million_tokens > 0;
    }
  }

  std::vector<std::string> header(Bytes device, const std::string& rank) const {
    std::vector<std::string> names{"row", "step time"};
    if (interval) names.emplace_back("90 % interval");
    if (change)
      names.emplace_back(own ? "compared\nwith file's\nlayout" : "compared\nwith rule\nof thumb");
    names.emplace_back("tokens\n/s/" + rank);
    if (utilization) names.emplace_back("MFU");
    names.push_back(device.value > 0 ? "memory of\n" + bytes_text(device) : "memory");
    if (price) names.emplace_back("$ per\nmillion\ntokens");
    return names;
  }

  std::vector<std::string> row(const std::string& place, const Candidate& c) const {
    std::vector<std::string> cells{place, (c.simulated ? "" : "~") + seconds_text(c.figures.step)};
    if (interval) cells.push_back(interval_text(c));
    if (change) cells.push_back(change_text(c));
    cells.push_back(count(c.figures.tokens_per_second_per_rank));
    if (utilization) cells.push_back(percent_text(c.figures.model_flops_utilization));
    cells.push_back(bytes_text(c.figures.needed_memory()));
    if (price) cells.push_back(number_text(c.figures.dollars_per_million_tokens, 4));
    return cells;
  }
};

void print_details(const Sweep& result) {
  for (const auto& [placement, gap] : result.gaps)
    std::cout << paragraph(
        std::string(name(placement)) +
        (gap > 0 ? ": a layout that the search did not reach could be up to " + percent_text(gap) +
                       " faster than the best row."
                 : ": no layout of the searched combinations has a smaller estimate."));
  for (const std::string& line : result.why) std::cout << paragraph(line);
}

}  // namespace

std::string memory_of_device(Bytes memory, Bytes device) {
  return bytes_text(memory) + (device.value > 0 ? " of " + bytes_text(device) : "");
}

std::string not_modeled(Bytes libraries, const std::string& joint) {
  return libraries > Bytes(0)
             ? "fragmentation" + joint + " is not modeled"
             : "fragmentation, NCCL buffers and workspaces" + joint + " are not modeled";
}

std::string margin_text(const Scenario& scenario, const std::string& set_by, Bytes libraries) {
  return percent_text(scenario.memory_margin(), 0) + " of the memory stays free for " +
         not_modeled(libraries, ", which") + " (" + set_by + ")";
}

void print_counts(const Sweep& result, bool details) {
  if (details)
    std::cout << paragraph(
        count(result.combinations) +
        " combinations: " + count(static_cast<double>(result.too_large)) +
        " need too much memory, " + count(static_cast<double>(result.pruned)) +
        " are ruled out by a lower bound of their step time; " +
        count(static_cast<double>(result.legal)) + " legal ones were checked one by one, " +
        count(static_cast<double>(result.estimated)) + " estimated and " +
        count(static_cast<double>(result.simulated)) +
        " simulated. These numbers do not add up: a bound may be that of a part which many "
        "combinations share, and a layout that is checked can then be ruled out.");
  std::int64_t refused = 0;
  for (const Rejection& r : result.rejected) refused += r.count;
  if (refused > 0 && !details && result.ranked.empty())
    std::cout << count(static_cast<double>(refused)) << " combinations are not legal, for "
              << counted(static_cast<std::int64_t>(result.rejected.size()), "reason", "reasons")
              << " (--details lists them)\n";
  if (details)
    for (const Rejection& r : result.rejected)
      std::cout << "  " << r.count << " not legal, " << name(r.placement) << ": " << r.example
                << "\n";
  if (result.too_large && result.ranked.empty())
    std::cout << paragraph("  The layout nearest to fitting is " + result.smallest_too_large.text +
                           ": " + result.smallest_too_large.bound.footprint.worst + " needs " +
                           bytes_text(result.smallest_too_large.bound.footprint.memory));
  if (!result.not_runnable.empty())
    std::cout << "  simulation only: " << result.not_runnable << "\n";
  for (const std::string& failure : result.failed) std::cout << "  FAILED " << failure << "\n";
}

void print_ranking(const Scenario& scenario, const HardwareProfile& profile, const Sweep& result,
                   const RankingOptions& options) {
  const auto words = [&](const Candidate& c) {
    return options.wide ? c.text : layout_words(scenario.model, c.layout, scenario.cluster);
  };
  const Columns columns(result);
  const Bytes device = result.ranked.front().figures.device_memory;
  Table table(columns.header(device, rank_word(scenario.cluster)));
  std::vector<std::string> layouts;
  std::vector<Placement> placements;
  bool estimated = false, open_interval = false;
  const auto add = [&](const std::string& place, const Candidate& c, const std::string& before) {
    table.add(columns.row(place, c));
    layouts.push_back(before + words(c));
    placements.push_back(c.layout.placement);
    estimated = estimated || !c.simulated;
    open_interval = open_interval || !c.belief;
  };
  const std::vector<bool> leading = leading_rows(result, scenario.model);
  const auto other = result.tied > 1 ? rival(result, leading) : std::nullopt;
  std::set<Placement> seen;
  std::size_t shown = 0;
  bool alike = false, later = false;  // rows left out as variants of an earlier one, after the last
  for (std::size_t i = 0; i < result.ranked.size(); ++i) {
    const Candidate& c = result.ranked[i];
    const bool first = seen.insert(c.layout.placement).second,
               named = result.tied > 1 && (i == result.simplest || i == other);
    if (((options.all || leading[i]) && shown < options.most) || first || named) {
      add(std::to_string(i + 1), c, "");
      ++shown;
    } else {
      (options.all || leading[i] ? later : alike) = true;
    }
  }
  for (const BaselineResult& baseline : result.baselines) {
    const bool fits = device.value == 0 || baseline.candidate.figures.needed_memory() <= device;
    add("", baseline.candidate, baseline.name + (fits ? ": " : " (does not fit): "));
  }
  std::cout << "\n" << table.text_with("layout", layouts, screen_columns()) << "\n";
  print_decision(result, leading);
  if (alike || later) std::cout << paragraph(left_out_text(alike, later, options.most));
  if (columns.interval)
    std::cout << paragraph("90 % interval: of the step time, by profile " + profile.name + ". " +
                           footing_text(profile) +
                           (open_interval ? " Rows without one were not compared." : ""));
  const Bytes libraries = result.ranked.front().figures.library_memory;
  const std::string with = libraries > Bytes(0)
                               ? ", with " + bytes_text(libraries) +
                                     " of libraries for the first row (CUDA, NCCL, cuBLAS)"
                               : "";
  if (device.value > 0)
    std::cout << paragraph(result.over_margin
                               ? "Memory: of the fullest rank" + with + ". No layout leaves " +
                                     percent_text(scenario.memory_margin(), 0) + " free for " +
                                     not_modeled(libraries, ", which") +
                                     ": these may run out of memory."
                               : "Memory: of the fullest rank" + with + "; " +
                                     margin_text(scenario, "--memory-margin", libraries) + ".");
  if (columns.price)
    std::cout << paragraph("$: at " + number_text(scenario.cluster.dollars_per_rank_hour, 2) +
                           " USD per " + rank_word(scenario.cluster) + " hour (cluster.price).");
  if (estimated)
    std::cout << paragraph("~: estimated (longest path); step times without it are simulated.");
  for (const BaselineResult& baseline : result.baselines)
    std::cout << paragraph(baseline_meaning(baseline.name));
  if (const std::string legend = placement_legend(scenario.model, placements); !legend.empty())
    std::cout << paragraph(legend);
  if (options.details) print_details(result);
}

}  // namespace polyphony::sim
