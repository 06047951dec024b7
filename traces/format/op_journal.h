// The journal of one rank: a binary file to which the rank appends the traced steps while it
// trains. Memory therefore does not grow with the number of steps, and a killed run keeps its
// records. When a run ends, trace files are written from the journals; the journals of a killed run
// are read directly (evidence/run_folder.h).
//
// A first line, then entries: length (8 bytes), contents, FNV-1a hash of the contents (8 bytes).
// Numbers are in the machine's byte order. Op ids are those of the rank's own Program; times are of
// its own steady clock. A truncated entry (killed process, full disk) ends the journal; damage in
// the middle causes an InputError.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "shared/program/timeline.h"

namespace polyphony::traces {

// The offset to add to this rank's clock to get rank 0's clock, measured at time `at` of this rank.
struct ClockSample {
  Seconds at{}, offset{};
  Seconds error{};  // upper bound of the error: half the round trip of the measurement
  bool operator==(const ClockSample&) const = default;
};

// Converts times from a rank's clock to rank 0's. Clocks drift (crystals: about 10 ppm, a
// millisecond in two minutes): between two samples the offset is interpolated linearly; before the
// first and after the last sample it is constant.
class RankClock {
 public:
  explicit RankClock(std::vector<ClockSample> samples = {});  // in ascending order of `at`
  Seconds offset(Seconds at) const;
  // Returns the largest error of any sample. It also holds between samples if the drift is
  // constant.
  Seconds error() const;
  double drift() const;  // seconds per second, from the first sample to the last
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
  std::uint64_t plan = 0;  // digest() of the StepPlan and the batch
  bool late_plan = false;
  DataWait data;
  Seconds recorded_in{};  // time that recording the previous step took; 0 for the first step
  std::vector<OpTime> ops;
  bool operator==(const JournalStep&) const = default;
};
// Converts all times of the step to rank 0's clock.
void move_to(const RankClock& clock, JournalStep& step);

std::string journal_head();
std::string journal_entry(const ClockSample& sample);
std::string journal_entry(const JournalStep& step);

// Reads a journal; keeps one step at a time in memory.
class JournalReader {
 public:
  // `in` must outlive the reader; `file` is used in messages.
  JournalReader(std::istream& in, std::string file);
  const RankClock& clock() const { return clock_; }
  // Returns the numbers of the recorded steps, in order of recording.
  const std::vector<std::uint64_t>& steps() const { return steps_; }
  // Returns the step, with times of the rank's own clock, or nothing if the journal does not hold
  // it.
  std::optional<JournalStep> read(std::uint64_t step);

 private:
  std::istream& in_;
  std::string file_;
  RankClock clock_;
  std::vector<std::uint64_t> steps_;
  std::vector<std::streamoff> places_;  // by step
};

}  // namespace polyphony::traces
