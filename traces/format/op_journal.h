// What one rank recorded of its traced steps, as it recorded it: appended to while it trains, so that
// memory does not grow with the steps and a killed run keeps what was recorded. A run that ends makes
// trace files of it; of one that did not, it is evidence itself (evidence/run_folder.h).
//   A first line, then entries: length (8 bytes), what they hold, FNV-1a of it (8 bytes). Numbers are
//   the machine's own. Ops are counted in the rank's own Program, times are of its own steady clock.
//   An entry that is cut off, by a kill or a full disk, ends the journal; damage in the middle is an
//   InputError.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "shared/program/timeline.h"

namespace polyphony::traces {

// What to add to this rank's clock to get rank 0's, as it was seen at `at` of this rank's clock.
struct ClockSample {
  Seconds at{}, offset{};
  Seconds error{};  // at most so much off: half the round trip that it was seen by
  bool operator==(const ClockSample&) const = default;
};

// Clocks drift (crystals: some 10 ppm, a millisecond in two minutes): between two samples the offset is
// on the line through them, before the first and after the last it stays.
class RankClock {
 public:
  explicit RankClock(std::vector<ClockSample> samples = {});  // of ascending `at`
  Seconds offset(Seconds at) const;
  Seconds error() const;  // of the worst sample; between samples too, while the drift is steady
  double drift() const;   // seconds a second, first sample to last
  bool known() const { return !samples_.empty(); }

 private:
  std::vector<ClockSample> samples_;
};

struct DataWait {  // for the step's data, before its first op
  Seconds start{}, end{};
  bool operator==(const DataWait&) const = default;
};

struct JournalStep {
  std::uint64_t step = 0;
  std::uint64_t plan = 0;  // digest() of the whole StepPlan and the batch
  bool late_plan = false;
  DataWait data;
  Seconds recorded_in{};  // what recording the step before this one took; of the first one: 0
  std::vector<OpTime> ops;
  bool operator==(const JournalStep&) const = default;
};
// Onto another clock.
void move_to(const RankClock& clock, JournalStep& step);

std::string journal_head();
std::string journal_entry(const ClockSample& sample);
std::string journal_entry(const JournalStep& step);

// Holds one step at a time.
class JournalReader {
 public:
  // `in` must outlive it; `file` is for messages.
  JournalReader(std::istream& in, std::string file);
  const RankClock& clock() const { return clock_; }
  // The numbers of its steps, as recorded.
  const std::vector<std::uint64_t>& steps() const { return steps_; }
  // Of the rank's own clock. Nothing: it holds no such step.
  std::optional<JournalStep> read(std::uint64_t step);

 private:
  std::istream& in_;
  std::string file_;
  RankClock clock_;
  std::vector<std::uint64_t> steps_;
  std::vector<std::streamoff> places_;  // by step
};

}  // namespace polyphony::traces
