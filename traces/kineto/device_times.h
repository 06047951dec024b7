// Accounts for the time of a device. Every moment between the start of the first event and the end
// of the last is idle or belongs to exactly one class, so that the classes and idle add up to the
// span, to the nanosecond.
//
// Streams run in parallel. A moment in which several events run is assigned to computation before
// communication before copies; among events of one kind, to the event that began first.
//
// Additional values show what this assignment hides: the sum of durations by class, and unions by
// kind as in HolisticTraceAnalysis (its computation time, and the part of communication that is
// overlapped with computation).
#pragma once

#include <array>
#include <vector>

#include "traces/kineto/device_trace.h"

namespace polyphony::traces {

struct ClassTime {
  Nanoseconds wall{};     // part of the span assigned to the class
  Nanoseconds kernels{};  // sum of the durations of its events
  std::int64_t count = 0;
  bool operator==(const ClassTime&) const = default;
};

struct DeviceTimes {
  Nanoseconds first{}, span{};  // start of the first event; time to the end of the last
  Nanoseconds idle{};
  std::array<ClassTime, static_cast<std::size_t>(last_of(KernelClass{})) + 1> classes{};
  // By kind: time in which at least one event of the kind runs.
  std::array<Nanoseconds, static_cast<std::size_t>(last_of(DeviceWork{})) + 1> busy{};
  Nanoseconds overlapped{};  // communication overlapped with computation
  const ClassTime& of(KernelClass kind) const { return classes[static_cast<std::size_t>(kind)]; }
  Nanoseconds of(DeviceWork work) const { return busy[static_cast<std::size_t>(work)]; }
  bool operator==(const DeviceTimes&) const = default;
};

// Returns the accounting of events, which must be in order of start. All times are zero if there
// are no events.
DeviceTimes device_times(const std::vector<const DeviceEvent*>& events);

struct StepTimes {
  std::size_t step = 0;  // position in DeviceTrace::steps
  DeviceTimes times;     // of the events launched in the step
  // Time from the end of its last event to the first start of the next step. Absent for the last
  // step; zero if the next step begins before this one ends.
  std::optional<Nanoseconds> gap = {};
};
struct RankTimes {
  DeviceTimes whole;             // of all events, also those launched outside of steps
  std::vector<StepTimes> steps;  // the steps that launched at least one event
};
RankTimes rank_times(const DeviceTrace& trace);

}  // namespace polyphony::traces
