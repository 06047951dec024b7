// A file with the measured ops of a step: a trace file (traces/format/chrome_json.h), or the
// profile of one rank by Kineto (traces/kineto/profiled_ops.h).
//
// A profile's op lasts as long as its annotation. Profiles of ranks on a device are rejected: their
// annotations state when the host queued an op, not when the device ran it.
#pragma once

#include <optional>
#include <string>

#include "shared/program/program.h"
#include "traces/format/chrome_json.h"

namespace polyphony::traces {

struct StepFile {
  std::uint64_t step = 0;
  bool late_plan = false;
  bool profiled = false;  // times contain the profiler's own work
};
// Returns what a file is of, without reading its ops.
StepFile read_step_file_head(const std::string& text, const std::string& file);

// Reads the files of one step.
class StepFiles {
 public:
  explicit StepFiles(const Program& program) : program_(program) {}
  // Throws InputError if the file is damaged, is of another Program, or lacks or repeats an op of
  // its rank.
  Trace read(const std::string& text, const std::string& file);

 private:
  Trace profile(const std::string& text, const std::string& file);

  const Program& program_;
  // Of the profiles read so far: the Unix time, in nanoseconds, that is 0 in their Timelines. A
  // double holds no Unix time to the nanosecond.
  std::optional<std::int64_t> origin_;
};

}  // namespace polyphony::traces
