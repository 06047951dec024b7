// One event of a profile as it stands in the file, read without what nobody here needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "traces/kineto/device_trace.h"
#include "traces/kineto/json_pull.h"

namespace polyphony::traces {

inline constexpr std::int64_t kAbsent = -1;

// The keys of one event that anything is made of.
struct ProfileEvent {
  std::string ph, cat, name, pid, tid, dims, type, collective, dtype, group, about_group, members,
      phase;
  std::int64_t ts = 0, dur = 0;
  bool has_ts = false, has_dur = false;
  std::int64_t correlation = kAbsent, stream = kAbsent, device = kAbsent, bytes = kAbsent;
  std::int64_t in = kAbsent, out = kAbsent, ranks = kAbsent;
  std::int64_t waits_on = kAbsent, recorded_by = kAbsent;  // a stream; a correlation

  void clear() {
    for (std::string* text : {&ph, &cat, &name, &pid, &tid, &dims, &type, &collective, &dtype,
                              &group, &about_group, &members, &phase})
      text->clear();
    has_ts = has_dur = false;
    correlation = stream = device = bytes = in = out = ranks = kAbsent;
    waits_on = recorded_by = kAbsent;
  }
};

// What an event's category stands for; case and spelling changed over the years.
enum class Category : std::uint8_t { kernel, copy, launch, host, stream_wait, other };
Category category_of(std::string_view cat);

// What a call of CUDA's or HIP's runtime may wait for on the host; nothing: it returns at once.
std::optional<WaitsFor> waits_for(std::string_view call);

// Into an event that is used again and again. Most events are none of a device and launch nothing: what
// follows their phase or category is passed over.
void read_event(JsonPull& json, ProfileEvent& event);
// A whole number, as such or in a string; of any other value: kAbsent.
std::int64_t read_integer(JsonPull& json);
// A string; any other value as it is written.
void read_text(JsonPull& json, std::string& into);

// A number of microseconds (`1682725898236567`, `4458676522690.655`), exactly, in nanoseconds. False: it
// is no number, or too large.
bool exact_nanoseconds(std::string_view number, std::int64_t& nanoseconds);

}  // namespace polyphony::traces
