#include "traces/kineto/profile_event.h"

#include <charconv>
#include <cmath>

namespace polyphony::traces {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 61;  // nanoseconds: 73 years

// Compares the length first: an event has a dozen arguments, few of which are used.
std::int64_t* number_of(std::string_view key, ProfileEvent& event) {
  switch (key.size()) {
    case 2:
      return key == "op" ? &event.op : nullptr;
    case 5:
      return key == "bytes" ? &event.bytes : nullptr;
    case 6:
      return key == "stream" ? &event.stream : key == "device" ? &event.device : nullptr;
    case 10:
      return key == "Group size" ? &event.ranks : nullptr;
    case 11:
      return key == "correlation" ? &event.correlation : nullptr;
    case 13:
      return key == "In msg nelems" ? &event.in : nullptr;
    case 14:
      return key == "Out msg nelems"   ? &event.out
             : key == "wait_on_stream" ? &event.waits_on
                                       : nullptr;
    case 33:
      return key == "wait_on_cuda_event_record_corr_id" ? &event.recorded_by : nullptr;
    default:
      return nullptr;
  }
}

std::string* text_of(std::string_view key, ProfileEvent& event) {
  switch (key.size()) {
    case 5:
      return key == "dtype" ? &event.dtype : key == "phase" ? &event.phase : nullptr;
    case 10:
      return key == "Input Dims" ? &event.dims : key == "Input type" ? &event.type : nullptr;
    case 15:
      return key == "Collective name" ? &event.collective : nullptr;
    case 18:
      return key == "Process Group Name" ? &event.group : nullptr;
    case 19:
      return key == "Process Group Ranks" ? &event.members : nullptr;
    case 25:
      return key == "Process Group Description" ? &event.about_group : nullptr;
    default:
      return nullptr;
  }
}

void read_args(JsonPull& json, ProfileEvent& event) {
  json.begin_object();
  std::string_view key;
  while (json.next_key(key)) {
    if (std::int64_t* into = number_of(key, event))
      *into = read_integer(json);
    else if (std::string* words = text_of(key, event))
      read_text(json, *words);
    else
      json.skip();
  }
}

}  // namespace

Category category_of(std::string_view cat) {
  if (cat == "kernel" || cat == "Kernel") return Category::kernel;
  if (cat == "gpu_memcpy" || cat == "gpu_memset" || cat == "Memcpy" || cat == "Memset")
    return Category::copy;
  if (cat == "cuda_runtime" || cat == "cuda_driver" || cat == "Runtime" || cat == "runtime")
    return Category::launch;
  if (cat == "cpu_op" || cat == "user_annotation" || cat == "Operator") return Category::host;
  if (cat == "cuda_sync") return Category::stream_wait;
  return Category::other;
}

std::optional<WaitsFor> waits_for(std::string_view call) {
  const auto has = [&](std::string_view part) { return call.find(part) != call.npos; };
  if (has("DeviceSynchronize") || has("CtxSynchronize")) return WaitsFor::device;
  if (has("StreamSynchronize")) return WaitsFor::stream;
  if (has("EventSynchronize")) return WaitsFor::event;
  if (has("Memcpy")) return WaitsFor::copy;
  if (has("Launch")) return WaitsFor::queue;
  return {};
}

std::int64_t read_integer(JsonPull& json) {
  const char c = json.peek();
  std::string_view text;
  if (c == '"')
    text = json.string();
  else if (c == '-' || (c >= '0' && c <= '9'))
    text = json.number();
  else
    json.skip();
  std::int64_t value = kAbsent;
  const auto [rest, trouble] = std::from_chars(text.data(), text.data() + text.size(), value);
  return trouble == std::errc() ? value : kAbsent;
}

ProfileClock read_profile_clock(JsonPull& json) {
  constexpr std::int64_t kYear = Nanoseconds(std::chrono::hours(24 * 365)).count();
  ProfileClock clock;
  json.begin_object();
  std::string_view key;
  while (json.next_key(key)) {
    if (key != "offset_ns" && key != "error_ns") {
      json.skip();
      continue;
    }
    Nanoseconds& into = key == "offset_ns" ? clock.offset : clock.error;
    const std::int64_t time = read_integer(json);
    if (time > kYear || time < -kYear) json.fail("a clock must be less than a year off");
    into = Nanoseconds(time);
  }
  return clock;
}

void read_text(JsonPull& json, std::string& into) {
  if (json.peek() == '"')
    into.assign(json.string());
  else
    into.assign(json.raw());
}

void read_event(JsonPull& json, ProfileEvent& event) {
  event.clear();
  json.begin_object();
  std::string_view key;
  while (json.next_key(key)) {
    switch (key.size() < 2 ? 0 : key[0] << 8 | key[1]) {
      case 'p' << 8 | 'h':
        read_text(json, event.ph);
        if (event.ph != "X") return json.leave();
        break;
      case 'c' << 8 | 'a':
        read_text(json, event.cat);
        if (event.ph == "X" && category_of(event.cat) == Category::other) return json.leave();
        break;
      case 'n' << 8 | 'a':
        read_text(json, event.name);
        break;
      case 'p' << 8 | 'i':
        read_text(json, event.pid);
        break;
      case 't' << 8 | 'i':
        read_text(json, event.tid);
        break;
      case 't' << 8 | 's':
        event.has_ts = true;
        if (!exact_nanoseconds(json.number(), event.ts)) json.fail("ts is out of range");
        break;
      case 'd' << 8 | 'u':
        event.has_dur = true;
        if (!exact_nanoseconds(json.number(), event.dur)) json.fail("dur is out of range");
        break;
      case 'a' << 8 | 'r':
        if (json.peek() == '{')
          read_args(json, event);
        else
          json.skip();
        break;
      default:
        json.skip();
    }
  }
}

bool exact_nanoseconds(std::string_view number, std::int64_t& nanoseconds) {
  const char* at = number.data();
  const char* end = at + number.size();
  const bool negative = at != end && *at == '-';
  if (negative) ++at;
  std::int64_t whole = 0;
  const auto [after, trouble] = std::from_chars(at, end, whole);
  if (trouble != std::errc() || after == at || whole < 0 || whole > kMost / 1000) return false;
  std::int64_t result = whole * 1000;
  at = after;
  if (at != end && *at == '.') {
    std::int64_t unit = 100;
    int next = -1;  // first digit that is not kept
    for (++at; at != end && *at >= '0' && *at <= '9'; ++at) {
      if (unit > 0)
        result += (*at - '0') * unit;
      else if (next < 0)
        next = *at - '0';
      unit /= 10;
    }
    if (next >= 5) ++result;
  }
  if (at != end) {  // an exponent, or invalid text
    double value = 0;
    const auto [rest, failed] = std::from_chars(number.data(), end, value);
    if (failed != std::errc() || rest != end ||
        !(std::abs(value) < static_cast<double>(kMost) / 1000))
      return false;
    nanoseconds = std::llround(value * 1000);
    return true;
  }
  nanoseconds = negative ? -result : result;
  return true;
}

}  // namespace polyphony::traces
