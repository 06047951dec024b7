#include "traces/kineto/host_work.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "traces/kineto/kernel_class.h"

namespace polyphony::traces {
namespace {

constexpr std::size_t kNoEvent = static_cast<std::size_t>(-1);

// Walks along the calls of one thread after another.
class Walk {
 public:
  explicit Walk(const Names& names) : names_(names) {}

  void enter(const HostCall& call) {
    leave_until(call.span.start, call.span.thread);
    add_part(call.span.start);
    open_.push_back({&call});
    if (transfer_ == nullptr && call.annotation && call.span.collective != kNone) {
      transfer_ = &call;
      add(call, call.span.start, call.span.end, KernelClass::collective);
      events_.back().detail = call.span.collective;
    }
  }
  std::vector<DeviceEvent> finish() {
    leave_all();
    return std::move(events_);
  }

 private:
  struct Open {
    const HostCall* call;
    std::size_t longest = kNoEvent, last = kNoEvent;  // of its events
  };

  void leave_until(std::int64_t time, std::uint32_t thread) {
    if (!open_.empty() && open_.front().call->span.thread != thread) leave_all();
    while (!open_.empty() && open_.back().call->span.end <= time) leave();
  }
  void leave_all() {
    while (!open_.empty()) leave();
    at_ = std::numeric_limits<std::int64_t>::min();
  }
  void leave() {
    add_part(open_.back().call->span.end);
    if (open_.back().call == transfer_) transfer_ = nullptr;
    open_.pop_back();
  }

  // Adds what the thread has done from the last change to `until`.
  void add_part(std::int64_t until) {
    const std::int64_t from = std::exchange(at_, std::max(at_, until));
    if (transfer_ != nullptr || until <= from) return;
    for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
      const HostCall& call = *open->call;
      const auto kind = call.annotation ? std::nullopt : class_of(call.span.name);
      if (!kind) continue;
      // Between the two it called something that does not count.
      if (open->last != kNoEvent && events_[open->last].end() == Nanoseconds(from)) {
        events_[open->last].duration = Nanoseconds(until) - events_[open->last].start;
      } else {
        open->last = events_.size();
        add(call, from, until, *kind);
      }
      if (*kind == KernelClass::gemm) state_size(*open);
      return;
    }
  }

  // States the size of a GEMM by the longest event so far.
  void state_size(Open& open) {
    if (open.longest == kNoEvent) open.longest = open.last;
    if (events_[open.longest].duration < events_[open.last].duration) {
      events_[open.longest].detail = kNone;
      open.longest = open.last;
    }
    events_[open.longest].detail = open.call->span.product;
  }

  void add(const HostCall& call, std::int64_t from, std::int64_t until, KernelClass kind) {
    DeviceEvent& made = events_.emplace_back();
    made.start = made.launched = Nanoseconds(from);
    made.duration = Nanoseconds(until - from);
    made.name = call.span.name;
    made.stream = static_cast<std::int32_t>(call.span.thread);
    made.kind = kind;
    for (const Open& open : open_)
      if (open.call->annotation) made.op = open.call->span.name;
  }

  std::optional<KernelClass> class_of(std::uint32_t name) {
    const auto [found, added] = classes_.try_emplace(name);
    if (added) found->second = operator_class(names_.text(name));
    return found->second;
  }

  const Names& names_;
  std::unordered_map<std::uint32_t, std::optional<KernelClass>> classes_;
  std::vector<Open> open_;  // outer calls first
  const HostCall* transfer_ = nullptr;
  std::int64_t at_ = std::numeric_limits<std::int64_t>::min();
  std::vector<DeviceEvent> events_;
};

}  // namespace

std::vector<DeviceEvent> host_work(std::vector<HostCall>& calls, const Names& names) {
  std::sort(calls.begin(), calls.end(), [](const HostCall& a, const HostCall& b) {
    // Outer calls come first, and of two that are equal the annotation.
    return std::tuple(a.span.thread, a.span.start, b.span.end, b.annotation) <
           std::tuple(b.span.thread, b.span.start, a.span.end, a.annotation);
  });
  Walk walk(names);
  for (const HostCall& call : calls) walk.enter(call);
  return walk.finish();
}

}  // namespace polyphony::traces
