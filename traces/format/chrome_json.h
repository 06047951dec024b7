// A Timeline as a Chrome trace JSON file (ui.perfetto.dev opens it), and back. Predicted and
// measured Timelines take the same form.
//   A process per rank (pid = rank + 1), a thread per stream (tid = ranks + 1 + stream: unique in
//   the world, never a pid), one "X" event per op, named as op_args.h
//   says, a flow ("s" to "f") per message, a counter ("C") of the rank's memory, and of the host's where something goes there
//   (shared/graph/memory_curves.h: the Program's sizes at the Timeline's times); in a file of one rank its step as torch.profiler marks it; in a measured file of one rank also its wait for the step's data ("X" without an op, on
//   the track after all streams' of the world). Times are whole nanoseconds, written in microseconds, so that ops of one stream never
//   overlap by rounding; what is read back is therefore within half a nanosecond of what was
//   written. A file of one rank carries "rank": N with the blank that HolisticTraceAnalysis looks
//   for; a file may also hold several ranks.
// Reading is strict: a file that is cut off, foreign, of another Program, or inconsistent is an
// InputError. Format: traces/README.md. Source: "Trace Event Format" (Chromium); nesting rule for X
// events: perfetto.dev docs, "Other trace formats".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/program/program.h"
#include "shared/program/timeline.h"
#include "traces/format/op_journal.h"

namespace polyphony::traces {

enum class TraceKind : std::uint8_t { predicted, measured };
const char* name(TraceKind kind);

// How the rank's clock was laid onto rank 0's.
struct ClockNote {
  Seconds offset{};  // at the step's first op
  Seconds error{};
  double drift = 0;  // seconds a second
  bool operator==(const ClockNote&) const = default;
};

// What is known of a step beside its Timeline.
struct TraceNotes {
  bool late_plan = false;               // planned without the layout's planner, which came too late
  std::optional<ClockNote> clock = {};  // measured
  Seconds recorded_in{};                // what recording the step before took
  std::optional<DataWait> data = {};    // of a rank's file: on a track of its own
};

struct TraceInfo {
  TraceKind kind = TraceKind::predicted;
  std::uint64_t program = 0;  // hash() of the Program
  std::uint64_t step = 0;     // training step; predictions: of the batch they are about
  std::uint32_t ranks = 0;    // of the world
  std::optional<Rank> rank;   // when the file holds the ops of one rank only
  bool late_plan = false;     // see TraceNotes
  std::optional<ClockNote> clock = {};
  bool operator==(const TraceInfo&) const = default;
};

// Categories of what is no op.
inline constexpr const char* kStepCategory = "user_annotation";
inline constexpr const char* kLaunchCategory = "cuda_runtime";
inline constexpr const char* kDataCategory = "data";

struct Trace {
  TraceInfo info;
  Timeline timeline;
};

// `timeline` may be partial. The info written follows from the arguments.
std::string write_trace(const Program& program, const Timeline& timeline, TraceKind kind,
                        std::uint64_t step, const TraceNotes& notes = {});

// `file` is for messages. What a trace is of, before its Program is known.
TraceInfo read_trace_info(const std::string& text, const std::string& file);
// Throws InputError unless the trace is of `program`.
Trace read_trace(const std::string& text, const std::string& file, const Program& program);

// One Timeline of all ranks from the parts of a step, moved so that the first op starts at 0.
// `files` (as many) name the parts in messages; a missing, foreign or repeated part is an
// InputError.
Timeline merge(const Program& program, const std::vector<Trace>& parts,
               const std::vector<std::string>& files);

}  // namespace polyphony::traces
