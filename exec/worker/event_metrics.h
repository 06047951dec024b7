// Writes the metrics of a training run as an event file of TensorBoard (traces/format/event_file.h)
// in the run's folder. Every write is checked: a full disk is an error that names the file.
//
//   train/loss, train/gradient_norm    NaN or infinite where the numbers of a step were not finite
//   train/learning_rate
//   train/step_seconds, train/samples_per_second
//   train/data_wait_seconds            how long the step waited for its data
//   train/checkpoint_wait_seconds      how long training waited for checkpoints
//   train/skipped                      1: the step's update was skipped, else 0
//   train/rewinds                      how many there were, at the step to which the last one went
//   eval/accuracy                      share of the held-out samples that were answered correctly
//   eval/loss                          mean over their labels
//
// Steps have the numbers that they have in metrics.jsonl (traces/format/metrics.h): a loss is of
// the step after `step` others, an accuracy is that after `step` steps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shared/files/descriptor.h"
#include "shared/ids.h"
#include "shared/units.h"
#include "traces/format/event_file.h"
#include "traces/format/metrics.h"

namespace polyphony::exec {

// Returns the scalars of a line, in the order of the table above.
std::vector<traces::Scalar> scalars_of(const traces::MetricsLine& line);

class EventMetrics {
 public:
  // Creates a new file in the folder. In TensorBoard it continues the files of earlier attempts
  // after their first `done` steps; `kept` holds the lines that metrics.jsonl keeps of them. Writes
  // nothing without a folder, and on ranks other than 0.
  EventMetrics(const std::string& folder, Rank rank, std::int64_t done,
               std::span<const traces::MetricsLine> kept);
  // Writes what is still in memory. Errors are ignored here, so call flush() before.
  ~EventMetrics();
  EventMetrics(const EventMetrics&) = delete;
  EventMetrics& operator=(const EventMetrics&) = delete;

  // Adds a line. Lines are kept in memory until a line is added a second or more after the last
  // write to the file.
  void write(const traces::MetricsLine& line);
  // Writes all lines to the file, and returns its path: empty if nothing is written.
  const std::string& flush();

 private:
  int write_pending();  // returns the system's error number, or 0

  std::string path_;
  Descriptor file_;
  std::string pending_;  // records that are not in the file yet
  Seconds flushed_{};
};

}  // namespace polyphony::exec
