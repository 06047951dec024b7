// Reads one event of a profile, without the keys that are not used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/kineto/device_trace.h"
#include "traces/kineto/json_pull.h"

namespace polyphony::traces {

inline constexpr std::int64_t kAbsent = -1;

// The keys of one event that the reader uses.
struct ProfileEvent {
  std::string ph, cat, name, pid, tid, dims, type, collective, dtype, group, about_group, members,
      phase;
  std::int64_t ts = 0, dur = 0;
  bool has_ts = false, has_dur = false;
  std::int64_t correlation = kAbsent, stream = kAbsent, device = kAbsent, bytes = kAbsent;
  std::int64_t in = kAbsent, out = kAbsent, ranks = kAbsent;
  std::int64_t waits_on = kAbsent, recorded_by = kAbsent;  // a stream, a correlation
  std::int64_t op = kAbsent;                               // of our own Program

  void clear() {
    for (std::string* text : {&ph, &cat, &name, &pid, &tid, &dims, &type, &collective, &dtype,
                              &group, &about_group, &members, &phase})
      text->clear();
    has_ts = has_dur = false;
    correlation = stream = device = bytes = in = out = ranks = kAbsent;
    waits_on = recorded_by = op = kAbsent;
  }
};

// Meaning of an event's category. Case and spelling of the categories differ between versions.
enum class Category : std::uint8_t { kernel, copy, launch, host, stream_wait, other };
Category category_of(std::string_view cat);

// Returns what a call of the CUDA or HIP runtime may wait for on the host; nothing if it returns
// immediately.
std::optional<WaitsFor> waits_for(std::string_view call);

// Reads the next event into `event`, which is reused. The rest of an event is skipped once its
// phase or category shows that it is not needed: most events are not device events and launch
// nothing.
void read_event(JsonPull& json, ProfileEvent& event);
// Reads an integer, plain or in a string; returns kAbsent for any other value.
std::int64_t read_integer(JsonPull& json);
// Reads the times of an object "clock" of our own files: 0 for one that is missing. Fails on a time
// of more than a year.
struct ProfileClock {
  Nanoseconds offset{}, error{};  // to add to the rank's clock to get rank 0's; its error
};
ProfileClock read_profile_clock(JsonPull& json);
// Reads a string; any other value is stored unchanged.
void read_text(JsonPull& json, std::string& into);

// Converts a number of microseconds (`1682725898236567`, `4458676522690.655`) exactly to
// nanoseconds. Returns false if it is not a number or is too large.
bool exact_nanoseconds(std::string_view number, std::int64_t& nanoseconds);

}  // namespace polyphony::traces
