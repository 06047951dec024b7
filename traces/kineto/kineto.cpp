#include "traces/kineto/kineto.h"

#include <algorithm>
#include <charconv>

#include "shared/error.h"
#include "traces/kineto/kernel_class.h"
#include "traces/kineto/profile_event.h"
#include "traces/kineto/recorded.h"

namespace polyphony::traces {
namespace {

constexpr const char* kRecord =
    "record with torch.profiler.profile(activities=[CPU, CUDA]) and export_chrome_trace()";

std::string_view without_nothing(std::string_view text) {
  return text == "undefined" || text == "[]" ? std::string_view() : text;
}

class Reader {
 public:
  Reader(ByteSource bytes, const std::string& file, const KinetoOptions& options)
      : step_(options.step.empty() ? "ProfilerStep#" : options.step),
        json_(unpacked(std::move(bytes), file), file, [this] { return place(); }) {
    trace_.file = file;
  }

  DeviceTrace read() {
    if (json_.peek() == 0)
      throw InputError(trace_.file, "", "the file is empty", "export the trace again");
    if (json_.peek() == '[')
      json_.fail("the file is a list of events; PyTorch's profiler writes an object");
    json_.begin_object();
    std::string_view key;
    while (json_.next_key(key)) {
      where_ = "/" + std::string(key);
      top_level(key);
    }
    where_.clear();
    json_.end();
    if (!has_events_)
      throw InputError(trace_.file, "/traceEvents",
                       "the key is missing: this is not a profiler's trace", kRecord);
    if (trace_.events.empty() && !trace_.on_host)
      throw InputError(
          trace_.file, "/traceEvents",
          "no kernel and no copy of a device among its " + std::to_string(index_) + " events",
          kRecord);
    if (trace_.ours && !trace_.rank)
      throw InputError(trace_.file, "/distributedInfo", "the file holds several ranks",
                       "give one file per rank: polyphony run --trace-steps writes them");
    return finished(std::move(recorded_), step_);
  }

 private:
  std::string place() const { return in_events_ ? where_ + "/" + std::to_string(index_) : where_; }

  void top_level(std::string_view key) {
    if (key == "traceEvents") {
      if (has_events_) json_.fail("the key occurs twice: does the file hold two traces?");
      has_events_ = true;
      read_events();
    } else if (key == "baseTimeNanoseconds") {
      base();
    } else if (key == "polyphony") {
      read_own();
    } else if (key == "distributedInfo" && json_.peek() == '{') {
      read_ranks();
    } else if (key == "deviceProperties" && json_.peek() == '[') {
      read_devices();
    } else {
      json_.skip();
    }
  }

  // A trace file of ours, or a profile (`polyphony run --kineto`).
  void read_own() {
    trace_.ours = true;
    if (json_.peek() != '{') return json_.skip();
    json_.begin_object();
    std::string_view key;
    while (json_.next_key(key)) {
      if (key == "kind" && json_.peek() == '"')
        trace_.ours = json_.string() != "profiled";
      else if (key == "on_device")
        trace_.on_host = json_.raw() == "false";
      else if (key == "clock" && json_.peek() == '{')
        trace_.clock_offset = read_profile_clock(json_).offset;
      else
        json_.skip();
    }
  }

  // Accepts Unix times of this century.
  void base() {
    constexpr std::int64_t k2100 = 4'102'444'800'000'000'000;
    const std::int64_t found = read_integer(json_);
    if (found > 0 && found < k2100) recorded_.base = Nanoseconds(found);
  }

  void read_ranks() {
    json_.begin_object();
    std::string_view key;
    while (json_.next_key(key)) {
      std::int64_t value = kAbsent;
      const bool rank = key == "rank";
      if (rank || key == "world_size") {
        value = read_integer(json_);
        if (value < 0 || value > 100'000'000)
          json_.fail("rank and world_size must be from 0 to 100000000");
        (rank ? trace_.rank : trace_.world) = static_cast<int>(value);
      } else if (key == "backend") {
        read_text(json_, trace_.backend);
      } else {
        json_.skip();
      }
    }
  }

  void read_devices() {
    json_.begin_array();
    while (json_.next_element()) {
      if (json_.peek() != '{') {
        json_.skip();
        continue;
      }
      json_.begin_object();
      std::string_view key;
      while (json_.next_key(key)) {
        if (key == "name" && trace_.device.empty())
          read_text(json_, trace_.device);
        else
          json_.skip();
      }
    }
  }

  void read_events() {
    json_.begin_array();
    in_events_ = true;
    for (; json_.next_element(); ++index_) {
      read_event(json_, event_);
      take_event();
    }
    in_events_ = false;
  }

  void take_event() {
    count_event();
    const Category category = category_of(event_.cat);
    if (event_.ph != "X" || category == Category::other) return;
    if (!event_.has_ts || !event_.has_dur) json_.fail("ts or dur is missing in the event");
    if (event_.dur < 0) json_.fail("a duration must not be negative");
    if (event_.dur > Nanoseconds(std::chrono::hours(24)).count())
      json_.fail("a duration of more than a day");
    switch (category) {
      case Category::kernel:
      case Category::copy:
        return take_device_event(category);
      case Category::launch:
        if (event_.correlation != kAbsent)
          recorded_.launches.push_back({event_.ts, event_.correlation, thread()});
        if (const auto what = waits_for(event_.name);
            what && (what != WaitsFor::queue || event_.dur >= kLongLaunch.count()))
          trace_.waits.push_back({Nanoseconds(event_.ts), Nanoseconds(event_.dur), *what});
        return;
      case Category::host:
        return take_span();
      case Category::stream_wait:
        return take_stream_wait();
      case Category::other:
        return;
    }
  }

  void count_event() {
    const std::string& kind = event_.ph == "X" ? event_.cat : event_.ph;
    if (count_ == nullptr || kind != counted_) {
      counted_ = kind;
      count_ = &trace_.read[event_.ph == "X" ? kind : "ph " + kind];
    }
    ++*count_;
  }

  std::uint32_t thread() {
    if (event_.tid != tid_ || event_.pid != pid_) {
      tid_ = event_.tid;
      pid_ = event_.pid;
      thread_ = threads_.of(pid_ + "\n" + tid_);
    }
    return thread_;
  }

  void take_device_event(Category category) {
    DeviceEvent made;
    made.start = made.launched = Nanoseconds(event_.ts);
    made.duration = Nanoseconds(event_.dur);
    made.name = recorded_.names.of(event_.name);
    std::int64_t stream = event_.stream;
    if (stream == kAbsent)
      std::from_chars(event_.tid.data(), event_.tid.data() + event_.tid.size(), stream);
    if (stream < -1 || stream > 0x7fffffff) json_.fail("the stream number is out of range");
    made.stream = static_cast<std::int32_t>(stream);
    if (category == Category::copy) {
      made.kind = copy_class(event_.name);
      made.bytes = Bytes(std::max<std::int64_t>(event_.bytes, 0));
    } else if (!event_.collective.empty()) {
      made.kind = KernelClass::collective;
      made.detail = collective();
    } else if (trace_.ours && !event_.phase.empty()) {
      made.kind = event_.phase == "optimizer" ? KernelClass::optimizer : KernelClass::layers;
    }
    trace_.events.push_back(made);
    recorded_.correlations.push_back(event_.correlation);
    recorded_.devices.push_back(static_cast<std::int32_t>(event_.device));
  }

  // For a host-side event ("Event Sync") no stream waits.
  void take_stream_wait() {
    constexpr std::int64_t kMost = 0x7fffffff;
    const bool told = event_.correlation != kAbsent && event_.recorded_by != kAbsent &&
                      event_.stream >= 0 && event_.stream <= kMost && event_.waits_on >= 0 &&
                      event_.waits_on <= kMost;
    if (told && event_.name == "Stream Wait Event")
      recorded_.stream_waits.push_back({static_cast<std::int32_t>(event_.stream),
                                        static_cast<std::int32_t>(event_.waits_on),
                                        event_.correlation, event_.recorded_by});
  }

  void take_span() {
    HostSpan span{event_.ts, event_.ts + event_.dur, recorded_.names.of(event_.name), thread()};
    if (!event_.dims.empty()) {
      MatrixProduct product;
      if (product_of(event_.name, event_.dims, product)) {
        span.product = static_cast<std::uint32_t>(trace_.products.size());
        trace_.products.push_back(product);
      }
    }
    if (!event_.collective.empty() || event_.name.starts_with("nccl:"))
      span.collective = collective();
    if (event_.name.starts_with(step_)) {
      StepRange step{recorded_.names.text(span.name), kAbsent, Nanoseconds(event_.ts),
                     Nanoseconds(event_.dur)};
      const std::size_t digits = step.name.find_last_not_of("0123456789") + 1;
      std::from_chars(step.name.data() + digits, step.name.data() + step.name.size(), step.number);
      trace_.steps.push_back(step);
      return;
    }
    if (trace_.on_host)
      recorded_.calls.push_back({span, event_.cat == "user_annotation"});
    else
      recorded_.spans.push_back(span);
  }

  // Computes the size from the event's arguments, or, if it has none, from the sizes of its
  // operands.
  std::uint32_t collective() {
    CollectiveShape shape;
    shape.call = collective_call(event_.collective.empty() ? event_.name : event_.collective);
    const int size = element_size(event_.dtype.empty() ? event_.type : event_.dtype);
    std::int64_t elements = std::max(event_.in, event_.out);
    // The input of an all-gather is one part of the array; the number of parts is unknown.
    if (elements < 0 && shape.call != CollectiveCall::all_gather)
      elements = first_elements(event_.dims);
    std::int64_t bytes = 0;
    if (elements > 0 && size > 0 && !__builtin_mul_overflow(elements, std::int64_t{size}, &bytes))
      shape.bytes = Bytes(bytes);
    if (event_.ranks > 0 && event_.ranks <= 100'000'000)
      shape.ranks = static_cast<int>(event_.ranks);
    const std::string_view about = without_nothing(event_.about_group);
    const std::string_view members = without_nothing(event_.members);
    shape.group = recorded_.names.text(recorded_.names.of(about.empty() ? event_.group : about));
    if (!members.empty()) shape.group += " " + recorded_.names.text(recorded_.names.of(members));
    return recorded_.add(shape);
  }

  std::string step_;
  JsonPull json_;
  std::string where_;
  bool in_events_ = false, has_events_ = false;
  std::size_t index_ = 0;
  ProfileEvent event_;
  Names threads_;
  std::string pid_, tid_, counted_;  // of the previous event
  std::uint32_t thread_ = kNone;
  std::int64_t* count_ = nullptr;
  Recorded recorded_;
  DeviceTrace& trace_ = recorded_.trace;
};

}  // namespace

DeviceTrace read_kineto(ByteSource bytes, const std::string& file, const KinetoOptions& options) {
  return Reader(std::move(bytes), file, options).read();
}

bool is_profile_of_others(ByteSource bytes, const std::string& file) {
  const ByteSource plain = unpacked(std::move(bytes), file);
  std::string head(kLongestHead, '\0');
  std::size_t size = 0;
  while (size < head.size()) {
    const std::size_t more = plain(head.data() + size, head.size() - size);
    if (more == 0) break;
    size += more;
  }
  head.resize(size);
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  const std::size_t events = head.find("\"traceEvents\"");
  if (first == head.npos || head[first] != '{' || events == head.npos) return false;
  return std::string_view(head).substr(0, events).find("\"polyphony\"") == head.npos;
}

}  // namespace polyphony::traces
