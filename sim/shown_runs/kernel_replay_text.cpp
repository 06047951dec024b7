#include "sim/shown_runs/kernel_replay_text.h"

#include <algorithm>
#include <map>

#include "shared/text/json_form.h"
#include "sim/console/console.h"
#include "sim/shown_runs/replay_tables.h"
#include "traces/report/svg_streams.h"

namespace polyphony::sim {
namespace {

constexpr std::size_t kMostRanks = 16;  // that are shown

std::string source_line(const KernelReplayAnswer& answer) {
  std::string ranks;
  if (answer.files.size() == 1)
    ranks = answer.files.front();
  else
    ranks = std::to_string(answer.files.size()) + " ranks";
  if (answer.world) ranks += ", of " + counted(*answer.world, "rank", "ranks");
  return answer.device.empty() ? ranks : ranks + ", " + answer.device;
}

std::string measured_text(const KernelReplayAnswer& answer) {
  return counted(static_cast<std::int64_t>(answer.measured.count), "step", "steps") +
         ", measured " + seconds_text(answer.measured.median) + " ±" +
         percent_text(answer.measured.repeatability()) + "; replayed unchanged " +
         seconds_text(answer.before.steps.median) + " (" +
         signed_percent_text(answer.replay_error) + ", for any single rank at most " +
         percent_text(answer.rank_error) + ")";
}

// Of ranks: wall time by class a step, mean over ranks.
ReplayTable steps_of(const KernelReplayAnswer& answer) {
  const bool both = answer.after.has_value();
  ReplayTable table{{"", "replayed"}, {}};
  if (both) table.columns = {"", "before", "after", "difference", ""};
  const auto add = [&](const std::string& what, const auto& of) {
    table.rows.push_back(difference_row(
        what, of(answer.before), both ? std::optional<Seconds>(of(*answer.after)) : std::nullopt));
  };
  add("step (median)", [](const PlayedKernels& played) { return played.steps.median; });
  for (std::size_t rank = 0;
       answer.ranks.size() > 1 && rank < std::min(answer.ranks.size(), kMostRanks); ++rank)
    add("  of rank " + std::to_string(answer.ranks[rank]),
        [&](const PlayedKernels& played) { return played.ranks[rank]; });
  const auto mean = [&](const auto& time) {
    return [&answer, time](const PlayedKernels& played) {
      Seconds sum{};
      for (const traces::DeviceTimes& times : played.times) sum += Seconds(time(times));
      return sum / static_cast<double>(played.times.size() *
                                       std::max<std::size_t>(1, answer.measured.count));
    };
  };
  for (std::size_t kind = 0; kind < answer.before.times.front().classes.size(); ++kind) {
    const auto wall =
        mean([kind](const traces::DeviceTimes& times) { return times.classes[kind].wall; });
    if (wall(answer.before).count() > 0)
      add(std::string("  ") + traces::name(static_cast<traces::KernelClass>(kind)), wall);
  }
  add("  idle", mean([](const traces::DeviceTimes& times) { return times.idle; }));
  return table;
}

// What explains the difference, or what the step is made of.
ReplayTable path_of(const KernelReplayAnswer& answer) {
  if (answer.after) return differences_table(answer.differences, answer.before.steps.mean);
  ReplayTable table{{"class", "on the path", "share of step"}, {}};
  Seconds all{};
  for (const PathDifference& row : answer.before.path) all += row.before;
  for (const PathDifference& row : answer.before.path)
    table.rows.push_back({row.label, seconds_text(row.before), percent_text(row.before / all)});
  return table;
}

ReplayTable origins_of(const KernelReplayAnswer& answer) {
  return mixture_table((answer.after ? *answer.after : answer.before).mixture);
}

// The colors of the Gantt charts of `polyphony run`.
const char* colour_of(traces::KernelClass kind) {
  if (kind == traces::KernelClass::gemm || kind == traces::KernelClass::convolution)
    return "forward";
  if (kind == traces::KernelClass::attention) return "backward";
  if (kind == traces::KernelClass::optimizer) return "optimizer";
  if (kind == traces::KernelClass::collective) return "reduce";
  return traces::work_of(kind) == traces::DeviceWork::memory ? "exchange" : "recompute";
}

// A rank's streams, those that compute longest first.
void add_lanes(const std::vector<PlayedEvent>& events, const std::string& rank,
               std::vector<traces::StreamLane>& lanes) {
  std::map<std::int32_t, std::pair<Seconds, std::vector<traces::StreamBar>>> streams;
  for (const PlayedEvent& event : events) {
    auto& [busy, bars] = streams[event.stream];
    busy += event.end - event.start;
    bars.push_back(
        {event.start, event.end, colour_of(event.kind),
         std::string(traces::name(event.kind)) + ": " + seconds_text(event.end - event.start)});
  }
  std::vector<std::pair<Seconds, std::vector<traces::StreamBar>>> order;
  for (auto& [stream, lane] : streams) order.push_back(std::move(lane));
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [busy, bars] : order) lanes.push_back({rank, std::move(bars)});
}

traces::SideBySide both_steps(const KernelReplayAnswer& answer) {
  traces::StreamsOptions options;
  options.width = 620;
  options.span = std::max(answer.before.shown, answer.after ? answer.after->shown : Seconds{});
  options.class_and_name = {{"forward", "GEMMs"},
                            {"backward", "attention"},
                            {"recompute", "other kernels"},
                            {"optimizer", "optimizer"},
                            {"reduce", "collectives"},
                            {"exchange", "copies"},
                            {"row", "idle"}};
  traces::SideBySide both;
  const auto add = [&](const PlayedKernels& played, const char* title) {
    options.title = title;
    std::vector<traces::StreamLane> lanes;
    for (std::size_t r = 0; r < std::min(played.events.size(), kMostRanks); ++r)
      add_lanes(played.events[r], "rank " + std::to_string(answer.ranks[r]), lanes);
    both.figures.push_back({traces::streams_chart(lanes, options),
                            "One step, " + seconds_text(played.shown) + ": a lane per stream"});
  };
  add(answer.before, "Before: as measured, replayed");
  if (answer.after) add(*answer.after, "After: changed");
  return both;
}

constexpr const char* kSteps = "mean of ranks, seconds a step of wall time by class";
constexpr const char* kPath = "the longest path, a step, by class";

std::string kernel_table_text(const ReplayTable& of) {
  Table table(of.columns);
  for (const std::vector<std::string>& row : of.rows) table.add(row);
  return table.text();
}

}  // namespace

std::string kernel_replay_text(const KernelReplayAnswer& answer) {
  std::string text = source_line(answer) + "\n" + measured_text(answer) + "\n";
  if (answer.after) text += "changed: " + joined(answer.said) + "\n";
  text += "\n" + std::string(kSteps) + "\n" + kernel_table_text(steps_of(answer));
  text += "\n" + std::string(kPath) + (answer.after ? ", which explains the difference" : "") +
          "\n" + kernel_table_text(path_of(answer));
  text += "\nwhere durations of kernels come from\n" + kernel_table_text(origins_of(answer));
  for (const std::string& note : answer.notes) text += "\nnote: " + note + "\n";
  return text;
}

traces::Report kernel_replay_page(const KernelReplayAnswer& answer) {
  traces::Report page{"Polyphony replay",
                      source_line(answer),
                      {{seconds_text(answer.measured.median), "measured step"},
                       {signed_percent_text(answer.replay_error), "replayed unchanged"}},
                      {},
                      "Made by `polyphony replay`; nothing is loaded from elsewhere."};
  if (answer.after) {
    page.facts.push_back({seconds_text(answer.after->steps.median), "changed step"});
    page.facts.push_back(
        {signed_percent_text(answer.after->steps.median / answer.before.steps.median - 1),
         "difference"});
  }
  traces::Section section{answer.after ? joined(answer.said) : "Replayed unchanged", {}};
  section.blocks.emplace_back(traces::Paragraph{measured_text(answer) + "."});
  for (const std::string& note : answer.notes)
    section.blocks.emplace_back(traces::Paragraph{"Note: " + note + "."});
  section.blocks.emplace_back(both_steps(answer));
  const auto add = [&](const ReplayTable& of, const std::string& caption, const std::string& note) {
    section.blocks.emplace_back(traces::Table{caption, of.columns, of.rows, {}, note});
  };
  add(steps_of(answer), "Where the step goes", std::string(kSteps) + ".");
  add(path_of(answer), answer.after ? "What explains the difference" : "The longest path",
      std::string(kPath) + ": it adds up to the mean step.");
  add(origins_of(answer), "Where durations come from", "");
  page.sections.push_back(std::move(section));
  return page;
}

}  // namespace polyphony::sim
