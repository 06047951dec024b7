// Writes the losses and times of a training run to its folder: metrics.jsonl, and an event file for
// TensorBoard. Every write is checked: a full disk is an error that names the file.
#pragma once

#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "exec/worker/control.h"
#include "exec/worker/event_metrics.h"
#include "exec/worker/train.h"
#include "traces/format/metrics.h"

namespace polyphony::exec {

// The evaluation with the least held-out loss.
struct BestEvaluation {
  std::int64_t step = 0;
  double loss = 0;
};

// The least held-out loss, and how many evaluations came after it.
struct Patience {
  double least = std::numeric_limits<double>::infinity();
  int since = 0;
  void add(double loss) {
    since = loss < least ? 0 : since + 1;  // not a number: not lower
    least = loss < least ? loss : least;
  }
};

// Return what rank 0 knows of earlier evaluations, on every rank. Collective.
std::optional<BestEvaluation> agreed_best(Control& control,
                                          const std::optional<BestEvaluation>& first);
Patience agreed_patience(Control& control, const Patience& first);

// The format of the lines: traces/format/metrics.h.
class MetricsFile {
 public:
  // Continues after the lines of the first `done` steps; later lines belong to steps that were lost
  // when a run was killed. Reports damaged lines on stderr and keeps the old file next to the new
  // one. Writes nothing without a folder, and on ranks other than 0.
  MetricsFile(const std::string& folder, Rank rank, std::int64_t done, std::int64_t rewinds);
  // The same after a rewind to step `done`; the first `rewinds` rewinds stay.
  void begin(std::int64_t done, std::int64_t rewinds);
  void write(const traces::MetricsLine& line);
  // Returns the best evaluation among the lines that were kept; nothing on ranks other than 0.
  std::optional<BestEvaluation> best() const { return best_; }
  // Returns the count of evaluations among these lines; that of none on ranks other than 0.
  const Patience& patience() const { return patience_; }
  // Returns the counts of skipped steps and rewinds, of the lines that were kept and written.
  const traces::BadSteps& bad_steps() const { return bad_steps_; }
  // Writes what is still in memory, and returns the files to sync so that it survives a crash.
  std::vector<std::string> flush();

 private:
  std::string folder_, path_;  // path_: empty if nothing is written
  std::ofstream file_;
  traces::BadSteps bad_steps_;
  std::optional<BestEvaluation> best_;
  Patience patience_;
  std::optional<EventMetrics> events_;  // none if nothing is written
};

}  // namespace polyphony::exec
