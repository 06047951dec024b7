#include "traces/evidence/step_file.h"

#include <algorithm>

#include "shared/error.h"
#include "traces/kineto/profiled_ops.h"

namespace polyphony::traces {
namespace {

constexpr const char* kOwnRun =
    "give all files of one step, and the scenario.json of the run that recorded them";

}  // namespace

StepFile read_step_file_head(const std::string& text, const std::string& file) {
  if (is_profile(text)) {
    const ProfiledOps profile = read_profiled_ops(text, file, true);
    return {static_cast<std::uint64_t>(profile.step), profile.late_plan, true};
  }
  const TraceInfo info = read_trace_info(text, file);
  return {info.step, info.late_plan, false};
}

Trace StepFiles::read(const std::string& text, const std::string& file) {
  return is_profile(text) ? profile(text, file) : read_trace(text, file, program_);
}

Trace StepFiles::profile(const std::string& text, const std::string& file) {
  const ProfiledOps profile = read_profiled_ops(text, file);
  if (profile.on_device)
    throw InputError(file, "/polyphony/on_device",
                     "states when the host queued each op, not when the GPU ran it",
                     "`polyphony trace` prints the GPU's times; to calibrate, record with "
                     "`polyphony run --trace-steps`");
  const bool exists = profile.ranks == program_.ranks;
  const Rank rank(exists ? static_cast<std::size_t>(profile.rank) : 0);
  const Range own = program_.ops_of(rank);
  if (!exists || profile.count != static_cast<std::int64_t>(own.size()) ||
      profile.ops.size() != own.size())
    throw InputError(file, "/traceEvents",
                     "has " + std::to_string(profile.ops.size()) + " ops of " +
                         std::to_string(profile.ranks) + " ranks, but rank " +
                         std::to_string(rank.value) + " of the scenario's " +
                         std::to_string(program_.ranks) + " runs " + std::to_string(own.size()),
                     kOwnRun);
  Trace trace;
  trace.info.kind = TraceKind::measured;
  trace.info.step = static_cast<std::uint64_t>(profile.step);
  trace.info.ranks = program_.ranks;
  trace.info.rank = rank;
  trace.info.late_plan = profile.late_plan;
  trace.info.clock = ClockNote{Seconds(profile.offset), Seconds(profile.error), 0};
  if (!origin_ && !profile.ops.empty()) origin_ = profile.ops.front().start.count();
  for (const ProfiledOp& time : profile.ops) {
    const auto local = static_cast<std::size_t>(time.op);
    if (local >= own.size() || time.name != describe(program_, OpId(own.begin + local)))
      throw InputError(file, "/traceEvents",
                       "its op " + std::to_string(time.op) + ", \"" + time.name +
                           "\", is not that of the scenario",
                       kOwnRun);
    const auto on_axis = [&](Nanoseconds at) {
      return Seconds(at - Nanoseconds(*origin_) + profile.offset);
    };
    trace.timeline.ops.push_back({OpId(own.begin + local), on_axis(time.start), on_axis(time.end)});
  }
  std::sort(trace.timeline.ops.begin(), trace.timeline.ops.end());
  const auto twice =
      std::adjacent_find(trace.timeline.ops.begin(), trace.timeline.ops.end(),
                         [](const OpTime& a, const OpTime& b) { return a.op == b.op; });
  if (twice != trace.timeline.ops.end())
    throw InputError(file, "/traceEvents",
                     "op " + std::to_string(twice->op.value - own.begin) + " appears twice",
                     kOwnRun);
  return trace;
}

}  // namespace polyphony::traces
