#include "traces/kineto/recorded.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "shared/error.h"
#include "traces/kineto/kernel_class.h"
#include "traces/kineto/profile_event.h"

namespace polyphony::traces {
namespace {

class Finisher {
 public:
  Finisher(Recorded& recorded, const std::string& step) : r_(recorded), step_(step) {}

  void run() {
    if (trace_.on_host) {
      trace_.events = host_work(r_.calls, r_.names);
      if (trace_.events.empty())
        throw InputError(trace_.file, "/traceEvents", "no operator among its events",
                         "record the step again: polyphony run --kineto");
      trace_.notes.emplace_back(
          "recorded on a CPU: the events are operators, messages and collectives of its threads");
    } else {
      keep_one_device();
      join();
      find_waits();
    }
    name_steps();
    rebase();
    if (r_.names.mended() > 0)
      trace_.notes.push_back(std::to_string(r_.names.mended()) +
                             " names are not UTF-8: their bytes are shown as ?");
    trace_.names = r_.names.take();
  }

 private:
  void keep_one_device();
  KernelClass class_of(std::uint32_t kernel, std::uint32_t op);
  void join();
  void find_waits();
  void name_steps();
  void rebase();

  Recorded& r_;
  DeviceTrace& trace_ = r_.trace;
  const std::string& step_;
  std::unordered_map<std::uint64_t, KernelClass> classes_;  // key: kernel and operator
};

// Cached: a trace has thousands of kernels with the same name.
KernelClass Finisher::class_of(std::uint32_t kernel, std::uint32_t op) {
  const auto [known, added] =
      classes_.try_emplace(std::uint64_t{kernel} << 32 | op, KernelClass::unknown);
  if (added)
    known->second = kernel_class(r_.names.text(kernel), op == kNone ? "" : r_.names.text(op));
  return known->second;
}

// Keeps the events of the rank's device. Copies between two devices may also be recorded for the
// other device.
void Finisher::keep_one_device() {
  std::map<std::int32_t, std::int64_t> counts;
  for (const std::int32_t device : r_.devices) ++counts[device];
  if (counts.size() < 2) return;
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < trace_.events.size(); ++i) {
    if (r_.devices[i] != most->first) continue;
    trace_.events[kept] = trace_.events[i];
    r_.correlations[kept++] = r_.correlations[i];
  }
  trace_.notes.push_back(std::to_string(trace_.events.size() - kept) +
                         " events of other devices than " + std::to_string(most->first) +
                         " were omitted");
  trace_.events.resize(kept);
  r_.correlations.resize(kept);
}

void Finisher::join() {
  std::sort(r_.launches.begin(), r_.launches.end(), [](const Launch& a, const Launch& b) {
    return std::pair(a.correlation, a.at) < std::pair(b.correlation, b.at);
  });
  const std::vector<LaunchedBy> by = launched_by(r_.spans, r_.launches, r_.names);
  std::int64_t alone = 0;
  for (std::size_t i = 0; i < trace_.events.size(); ++i) {
    DeviceEvent& event = trace_.events[i];
    LaunchedBy around;
    const auto launch = std::lower_bound(
        r_.launches.begin(), r_.launches.end(), r_.correlations[i],
        [](const Launch& a, std::int64_t correlation) { return a.correlation < correlation; });
    if (r_.correlations[i] != kAbsent && launch != r_.launches.end() &&
        launch->correlation == r_.correlations[i]) {
      event.launched = Nanoseconds(launch->at);
      around = by[static_cast<std::size_t>(launch - r_.launches.begin())];
    } else {
      ++alone;
    }
    event.op = around.op;
    if (work_of(event.kind) == DeviceWork::memory) continue;
    if (event.kind == KernelClass::unknown) event.kind = class_of(event.name, around.op);
    if (event.kind == KernelClass::collective) {
      if (event.detail == kNone) event.detail = around.collective;
      continue;
    }
    if (event.kind == KernelClass::gemm) event.detail = around.product;
    if (around.optimizer) event.kind = KernelClass::optimizer, event.detail = kNone;
  }
  // A collective that is known only by its kernel's name.
  for (DeviceEvent& event : trace_.events)
    if (event.kind == KernelClass::collective && event.detail == kNone)
      event.detail = r_.add({.call = collective_call(r_.names.text(event.name))});
  if (alone > 0)
    trace_.notes.push_back(
        std::to_string(alone) +
        " events have no launch on the host: their step is determined by their start");
}

// Uses recorded calls only; launches are found by correlation.
void Finisher::find_waits() {
  const auto call = [&](std::int64_t correlation) -> std::optional<Nanoseconds> {
    const auto found = std::lower_bound(
        r_.launches.begin(), r_.launches.end(), correlation,
        [](const Launch& a, std::int64_t wanted) { return a.correlation < wanted; });
    if (found == r_.launches.end() || found->correlation != correlation) return {};
    return Nanoseconds(found->at);
  };
  for (const RecordedWait& wait : r_.stream_waits) {
    const auto asked = call(wait.asked), recorded = call(wait.recorded);
    if (asked && recorded) trace_.stream_waits.push_back({wait.stream, wait.on, *asked, *recorded});
  }
}

void Finisher::name_steps() {
  std::vector<StepRange>& steps = trace_.steps;
  std::sort(steps.begin(), steps.end(),
            [](const StepRange& a, const StepRange& b) { return a.start < b.start; });
  // The same annotation was recorded on another thread.
  steps.erase(std::unique(steps.begin(), steps.end(),
                          [](const StepRange& a, const StepRange& b) {
                            return a.name == b.name && b.start < a.start + a.duration;
                          }),
              steps.end());
  for (std::size_t s = 0; s < steps.size(); ++s)
    if (steps[s].number < 0) steps[s].number = static_cast<std::int64_t>(s);
  if (steps.empty())
    trace_.notes.push_back("no annotation begins with \"" + step_ + "\": steps are not separated");
  for (DeviceEvent& event : trace_.events) {
    const auto after =
        std::upper_bound(steps.begin(), steps.end(), event.launched,
                         [](Nanoseconds at, const StepRange& step) { return at < step.start; });
    if (after == steps.begin()) continue;
    const StepRange& step = *(after - 1);
    if (event.launched < step.start + step.duration)
      event.step = static_cast<std::int32_t>(after - 1 - steps.begin());
  }
}

void Finisher::rebase() {
  Nanoseconds origin = trace_.events.front().start;
  for (const DeviceEvent& event : trace_.events) origin = std::min(origin, event.start);
  for (const StepRange& step : trace_.steps) origin = std::min(origin, step.start);
  for (DeviceEvent& event : trace_.events) {
    event.start -= origin;
    event.launched -= origin;
  }
  for (StepRange& step : trace_.steps) step.start -= origin;
  for (HostWait& wait : trace_.waits) wait.start -= origin;
  for (StreamWait& wait : trace_.stream_waits) {
    wait.asked -= origin;
    wait.recorded -= origin;
  }
  std::sort(trace_.waits.begin(), trace_.waits.end(), [](const HostWait& a, const HostWait& b) {
    return std::tuple(a.start, a.duration, a.what) < std::tuple(b.start, b.duration, b.what);
  });
  std::sort(trace_.events.begin(), trace_.events.end(),
            [](const DeviceEvent& a, const DeviceEvent& b) {
              return std::tuple(a.start, a.stream, a.duration, a.name) <
                     std::tuple(b.start, b.stream, b.duration, b.name);
            });
  trace_.origin = origin;
  // Times of old files count from 1970; none is from before 2010 (1.26e18 ns).
  constexpr std::int64_t k2010 = 1'262'304'000'000'000'000;
  if (r_.base)
    trace_.unix_of = *r_.base + origin + trace_.clock_offset;
  else if (origin.count() > k2010)
    trace_.unix_of = origin;
}

}  // namespace

std::uint32_t Recorded::add(const CollectiveShape& shape) {
  const auto [found, added] =
      shapes.emplace(shape, static_cast<std::uint32_t>(trace.collectives.size()));
  if (added) trace.collectives.push_back(shape);
  return found->second;
}

DeviceTrace finished(Recorded recorded, const std::string& step) {
  Finisher(recorded, step).run();
  return std::move(recorded.trace);
}

}  // namespace polyphony::traces
