// Writes a Timeline as a Chrome trace JSON file (ui.perfetto.dev opens it), and reads it back.
// Predicted and measured Timelines have the same form. Format: traces/README.md.
//
//   A rank is a process (pid = rank + 1), a stream is a thread (tid = ranks + 1 + stream: unique in
//   the world, and never equal to a pid).
//   Each op is an "X" event, named as in op_args.h; each message is a flow ("s" to "f").
//   Counters ("C") show the memory of the rank, and that of the host if something is copied there
//   (shared/graph/memory_curves.h: sizes of the Program at the times of the Timeline).
//   A file of one rank has its step as an event, like torch.profiler. A measured file of one rank
//   also has the wait for the step's data ("X" without an op, on a track after all streams).
//
// Times are integer nanoseconds, written in microseconds with three decimals, so that rounding
// never makes ops of one stream overlap. A time that is read back differs from the written Timeline
// by at most half a nanosecond. A file of one rank contains "rank": N with the space for which
// HolisticTraceAnalysis searches. A file may also hold several ranks.
//
// Reading is strict: a file that is truncated, belongs to another Program, is no trace file, or is
// inconsistent causes an InputError. Source: "Trace Event Format" (Chromium); nesting rule for X
// events: perfetto.dev docs, "Other trace formats".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/enum_names.h"
#include "shared/program/program.h"
#include "shared/program/timeline.h"
#include "traces/format/op_journal.h"

namespace polyphony::traces {

using polyphony::name;  // of the enums below

enum class TraceKind : std::uint8_t { predicted, measured };
constexpr auto names(TraceKind) { return names_of<TraceKind>("predicted", "measured"); }

// Conversion of the rank's clock to rank 0's.
struct ClockNote {
  Seconds offset{};  // at the step's first op
  Seconds error{};
  double drift = 0;  // seconds per second
  bool operator==(const ClockNote&) const = default;
};

// Information about a step in addition to its Timeline.
struct TraceNotes {
  bool late_plan = false;  // the planner's plan came too late; the step ran the default plan
  std::optional<ClockNote> clock = {};  // measured
  Seconds recorded_in{};                // time that recording the previous step took
  std::optional<DataWait> data = {};    // in a file of one rank: on its own track
};

struct TraceInfo {
  TraceKind kind = TraceKind::predicted;
  std::uint64_t program = 0;  // hash() of the Program
  std::uint64_t step = 0;     // training step; for a prediction: the step of its batch
  std::uint32_t ranks = 0;    // of the world
  std::optional<Rank> rank;   // present if the file holds the ops of one rank only
  bool late_plan = false;     // see TraceNotes
  std::optional<ClockNote> clock = {};
  bool operator==(const TraceInfo&) const = default;
};

// Categories of events that are not ops.
inline constexpr const char* kStepCategory = "user_annotation";
inline constexpr const char* kLaunchCategory = "cuda_runtime";
inline constexpr const char* kDataCategory = "data";

struct Trace {
  TraceInfo info;
  Timeline timeline;
};

// Returns the text of a trace file. `timeline` may be partial.
std::string write_trace(const Program& program, const Timeline& timeline, TraceKind kind,
                        std::uint64_t step, const TraceNotes& notes = {});

// Returns the metadata of a trace; the Program need not be known. `file` is used in messages.
TraceInfo read_trace_info(const std::string& text, const std::string& file);
// Returns the trace. Throws InputError if it is not a trace of `program`.
Trace read_trace(const std::string& text, const std::string& file, const Program& program);

// Merges the parts of a step into one Timeline of all ranks, shifted so that the first op starts at
// 0. `files` (one name per part) are used in messages. Throws InputError if a part is missing,
// repeated or belongs to another step or Program.
Timeline merge(const Program& program, const std::vector<Trace>& parts,
               const std::vector<std::string>& files);

}  // namespace polyphony::traces
