#include "sim/shown/stream_text.h"

#include "shared/data/batch_json.h"
#include "shared/statistics.h"
#include "sim/console/console.h"
#include "sim/shown/profile_text.h"
#include "sim/shown/sweep_text.h"

namespace polyphony::sim {
namespace {

std::string describe(const StreamSample& sample) {
  std::string text = "sample " + std::to_string(sample.id) + " (";
  for (std::size_t i = 0; i < sample.tokens.size(); ++i)
    text += std::string(i ? ", " : "") + name(sample.tokens[i].first) + " " +
            count_text(sample.tokens[i].second);
  return text + " tokens), " + bytes_text(sample.held) + " of the peak";
}

std::vector<std::string> quantile_names() {
  return {std::begin(kStreamQuantileNames), std::end(kStreamQuantileNames)};
}

// Adds a row of percentiles of sorted values.
template <class Value, class Text>
void add_row(Table& table, const std::string& name, const std::vector<Value>& values,
             const Text& text) {
  std::vector<std::string> row{name};
  for (const double q : kStreamQuantiles)
    row.push_back(stream_reaches(values.size(), q) ? text(nearest_rank(values, q)) : "-");
  row.push_back(text(values.back()));
  table.add(std::move(row));
}

// Percentiles of the step time and of idle time.
std::string steps_text(const BatchStream& stream) {
  std::vector<std::string> head = quantile_names();
  head.insert(head.begin(), "");
  head.push_back("largest");
  Table table(head);
  add_row(table, "step", stream.sorted_steps(), [](Seconds time) { return seconds_text(time); });
  const auto share = [](double value) { return percent_text(value); };
  add_row(table, "idle, mean of ranks", stream.sorted_bubbles(&Bubbles::mean), share);
  add_row(table, "  of it waiting for communication",
          stream.sorted_bubbles(&Bubbles::communication), share);
  add_row(table, "idle, worst rank", stream.sorted_bubbles(&Bubbles::worst), share);
  return table.text(screen_columns());
}

std::string memory_text(const BatchStream& stream) {
  std::vector<std::string> head = quantile_names();
  head.insert(head.begin(), "peak memory of");
  head.insert(head.end(), {"largest", "share of device"});
  Table table(head);
  for (std::size_t stage = 0; stage < stream.stages.size(); ++stage) {
    const std::vector<Bytes> peaks = stream.sorted_peaks(stage);
    std::vector<std::string> row{stream.stages[stage]};
    for (const double q : kStreamQuantiles)
      row.push_back(stream_reaches(peaks.size(), q) ? bytes_text(nearest_rank(peaks, q)) : "-");
    row.push_back(bytes_text(peaks.back()));
    row.push_back(stream.device.value ? percent_text(static_cast<double>(peaks.back().value) /
                                                         static_cast<double>(stream.device.value),
                                                     0)
                                      : "?");
    table.add(std::move(row));
  }
  return table.text(screen_columns());
}

constexpr const char* kWhatToChange =
    "To make it fit: more microbatches, recomputation or sharding (polyphony why SCENARIO lists "
    "changes), "
    "or leave out or shorten the largest samples (data.sequence, polyphony scan).";

// How often a step does not fit, and for a data set whether its largest samples together would.
std::string risk_text(const BatchStream& stream, int steps) {
  const MemoryRisk risk = memory_risk(stream, steps);
  const auto batches = static_cast<std::int64_t>(stream.batches.size());
  std::string text = "\n";
  if (risk.exceeded > 0)
    text += paragraph("Out of memory: " + count_text(static_cast<std::int64_t>(risk.exceeded)) +
                      " of " + counted(batches, "batch", "batches") + " (" +
                      percent_text(risk.per_step) + " of steps). A run of " +
                      counted(steps, "step", "steps") + " meets one with " +
                      percent_text(risk.in_run) + ". " + kWhatToChange);
  else
    text += paragraph("Out of memory: none of " + counted(batches, "batch", "batches") +
                      (stream.largest_samples
                           ? "."
                           : "; by that number alone up to " + percent_text(risk.per_step_most) +
                                 " of steps may be (95 % bound): more --batches narrow it down."));
  if (!stream.largest_samples) return text;
  const StreamBatch& largest = *stream.largest_samples;
  const Bytes peak = stream.peak(largest);
  const bool fits = stream.device.value == 0 || peak <= stream.device;
  text += paragraph("A batch of the data set's largest samples needs " +
                    memory_of_device(peak, stream.device) + " on " + stream.stages[largest.worst] +
                    (fits ? ": it fits, and so should every other batch, as far as memory is "
                            "modeled."
                          : ": it does not fit, and a shuffled run may draw one that is near it. " +
                                (risk.exceeded > 0 ? std::string() : std::string(kWhatToChange))));
  if (!fits)
    for (const StreamSample& sample : largest.samples) text += "  " + describe(sample) + "\n";
  return text;
}

}  // namespace

std::string stream_text(const BatchStream& stream, const HardwareProfile& profile, int steps) {
  const StreamBatch& worst = stream.worst();
  std::string text = counted(static_cast<std::int64_t>(stream.batches.size()), "batch", "batches") +
                     " estimated (" + describe(profile) + ")" +
                     (stream.planner.empty() ? "" : ", each planned by " + stream.planner) +
                     "\n\n" + steps_text(stream) + "\n" + memory_text(stream) +
                     "\nlargest peak of these: batch " + std::to_string(worst.number) + ", " +
                     stream.stages[worst.worst] + ", " +
                     memory_of_device(stream.peak(worst), stream.device) + "; most of it:\n";
  for (const StreamSample& sample : worst.samples) text += "  " + describe(sample) + "\n";
  return text + risk_text(stream, steps);
}

}  // namespace polyphony::sim
