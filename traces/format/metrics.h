// metrics.jsonl of a run: a line for every step and for every evaluation, in the order they happened.
//   {"step": 3, "loss": 2.1, "gradient_norm": 0.8, "skipped": false, "learning_rate": 1e-3,
//    "seconds": 0.12, "samples_per_second": 530, "check": "9f…"}     the step that began as the 4th
//   {"step": 50, "accuracy": 0.71, "held_out": 512, "check": "9f…"}   after 50 steps
// Of runs that plan while they train (exec/planning/live_plans.h) a step has "late_plan" and "waited", too.
// JSON has no NaN: such losses and norms are null. "check", the last key, is the FNV-1a of the line
// without it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "shared/units.h"

namespace polyphony::traces {

struct StepMetrics {
  std::int64_t step = 0;
  double loss = 0, gradient_norm = 0;  // NaN: not a number, or infinite
  bool skipped = false;                // for numbers that are not finite
  double learning_rate = 0;
  Seconds seconds{};
  double samples_per_second = 0;
  // Planned live: whether its plan came too late; and how long its beginning waited for its data.
  std::optional<bool> late_plan = {};
  Seconds waited{};
};
struct Accuracy {
  std::int64_t step = 0;
  double share = 0;  // of the held-out samples
  int held_out = 0;
};
using MetricsLine = std::variant<StepMetrics, Accuracy>;

std::string to_line(const MetricsLine& line);  // without the line's end
// Nothing: it is damaged, or no line of ours.
std::optional<MetricsLine> parse_metrics_line(const std::string& text);

struct Metrics {
  std::vector<MetricsLine> lines;
  std::string text;  // the same lines, as they stood
  // "line 17 is damaged", "steps 12 to 14 are missing"; a last line cut off by a killed run is none.
  std::vector<std::string> damage;
};
Metrics parse_metrics(const std::string& text);
// What a run that had done `steps` steps had written; later lines are of steps that were lost with
// it. Steps up to there that have no line are damage.
Metrics metrics_until(const std::string& text, std::int64_t steps);

}  // namespace polyphony::traces
