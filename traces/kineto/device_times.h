// Where a device's time goes: every moment between the first event's start and the last one's end is idle or
// belongs to one class, so that the classes and idle add up to the span, to the nanosecond.
//   Streams run side by side: a moment in which several events run belongs to computation before
//   communication before copies, and among those of one kind to the event that began first. Beside it,
//   what that hides: the sum of durations by class, and unions by kind, as HolisticTraceAnalysis has them
//   (its computation, and the part of communication that computation overlaps).
#pragma once

#include <array>
#include <vector>

#include "traces/kineto/device_trace.h"

namespace polyphony::traces {

struct ClassTime {
  Nanoseconds wall{};     // its part of the span
  Nanoseconds kernels{};  // sum of its events' durations
  std::int64_t count = 0;
  bool operator==(const ClassTime&) const = default;
};

struct DeviceTimes {
  Nanoseconds first{}, span{};  // start of the first event; until the end of the last
  Nanoseconds idle{};
  std::array<ClassTime, static_cast<std::size_t>(last_of(KernelClass{})) + 1> classes{};
  // By kind: when at least one event of it runs.
  std::array<Nanoseconds, static_cast<std::size_t>(last_of(DeviceWork{})) + 1> busy{};
  Nanoseconds overlapped{};  // communication beside computation
  const ClassTime& of(KernelClass kind) const { return classes[static_cast<std::size_t>(kind)]; }
  Nanoseconds of(DeviceWork work) const { return busy[static_cast<std::size_t>(work)]; }
  bool operator==(const DeviceTimes&) const = default;
};

// Of events in order of their starts. None: all zero.
DeviceTimes device_times(const std::vector<const DeviceEvent*>& events);

struct StepTimes {
  std::size_t step = 0;  // of DeviceTrace::steps
  DeviceTimes times;     // of what was launched in it
  // From its last event's end to the next step's first start; nothing for the last step, and none where
  // the next begins before this one ends.
  std::optional<Nanoseconds> gap = {};
};
struct RankTimes {
  DeviceTimes whole;             // of all events, launched in steps or not
  std::vector<StepTimes> steps;  // those that launched anything
};
RankTimes rank_times(const DeviceTrace& trace);

}  // namespace polyphony::traces
