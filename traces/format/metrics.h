// Reads and writes metrics.jsonl of a run: one line per step, evaluation and rewind, in the order
// in which they happened.
//
//   {"step": 3, "loss": 2.1, "gradient_norm": 0.8, "skipped": false, "learning_rate": 1e-3,
//    "seconds": 0.12, "samples_per_second": 530, "waited": 0, "check": "9f…"}   after 3 others
//   {"step": 50, "accuracy": 0.71, "held_out": 512, "held_out_loss": 0.9, "check": "9f…"}
//                                                                         after 50 steps
//   {"step": 100, "rewind": 1, "from": 137, "passed_over": 38, "why": "loss", "check": "9f…"}
//                                     step 137 was bad, training went on with step 100
//
// A step without an update has "skipped": true, and "why": "loss" or "gradient norm" if it was a
// spike; else its numbers were not finite. A rewind removes the lines that it takes back, and
// passes over the batches of that many steps.
//
// "waited" is how long the step waited for its data, which are prepared while earlier steps run; it
// is part of neither "seconds" nor any op. "saving", if there is any, is how long training waited
// for checkpoints since the line of the step before: before the step, or before its update. Runs
// that plan during training (exec/planning/live_plans.h) also have "late_plan" in each step. JSON
// has no NaN: such losses and norms are null. "check", the last key, is the FNV-1a hash of the line
// without it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "shared/units.h"

namespace polyphony::traces {

struct StepMetrics {
  std::int64_t step = 0;
  double loss = 0, gradient_norm = 0;  // NaN: not a number, or infinite
  bool skipped = false;                // the update was skipped: a bad step
  double learning_rate = 0;
  Seconds seconds{};
  double samples_per_second = 0;
  std::optional<bool> late_plan = {};  // if planned during training: whether the plan came too late
  Seconds waited{};                    // for the step's data
  Seconds saving{};                    // for checkpoints
  std::string why = {};  // skipped: "loss", "gradient norm"; empty: non-finite numbers
};
struct Accuracy {
  std::int64_t step = 0;
  double share = 0;  // share of the held-out samples that were answered correctly
  int held_out = 0;
  std::optional<double> loss = {};  // mean over their labels; absent in older files
};
struct Rewind {
  std::int64_t step = 0;         // with which training went on
  std::int64_t number = 1;       // of the rewind in the run, from 1
  std::int64_t from = 0;         // the bad step
  std::int64_t passed_over = 0;  // batches
  std::string why;               // "loss", "gradient norm", "non-finite values"
};
using MetricsLine = std::variant<StepMetrics, Accuracy, Rewind>;

std::string to_line(const MetricsLine& line);  // without the line break
// Returns nothing if the line is damaged or is not a metrics line.
std::optional<MetricsLine> parse_metrics_line(const std::string& text);

struct Metrics {
  std::vector<MetricsLine> lines;
  std::string text;  // the same lines as text, unchanged
  // Such as "line 17 is damaged", "steps 12 to 14 are missing". A last line that was truncated
  // because the run was killed does not count as damage.
  std::vector<std::string> damage;
};
Metrics parse_metrics(const std::string& text);
// Returns the metrics of the first `steps` steps, and of the first `rewinds` rewinds. Later lines
// are dropped: they belong to steps that were lost after the last checkpoint. A missing line among
// the first `steps` steps is damage.
Metrics metrics_until(const std::string& text, std::int64_t steps, std::int64_t rewinds = 0);

// Counts skipped steps and rewinds by reason.
struct BadSteps {
  std::map<std::string, int> skipped, rewinds;
  void add(const MetricsLine& line);
  // Returns such as "3 steps were skipped (loss: 2, non-finite values: 1), 1 rewind (loss: 1)";
  // empty: none.
  std::string text() const;
};
BadSteps bad_steps_of(const Metrics& metrics);

}  // namespace polyphony::traces
