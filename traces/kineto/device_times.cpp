#include "traces/kineto/device_times.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace polyphony::traces {
namespace {

// A running event. The first one in order gets the moment.
using Running = std::tuple<DeviceWork, Nanoseconds, std::size_t>;

class Sweep {
 public:
  explicit Sweep(const std::vector<const DeviceEvent*>& events) : events_(events) {
    result_.first = now_ = events.front()->start;
  }

  DeviceTimes run() {
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const DeviceEvent& event = *events_[i];
      until(event.start);
      ClassTime& time = class_of(event);
      time.kernels += event.duration;
      ++time.count;
      if (event.duration.count() == 0) continue;
      running_.emplace(work_of(event.kind), event.start, i);
      ends_.emplace(event.end(), i);
      ++kinds_[static_cast<std::size_t>(work_of(event.kind))];
    }
    until(Nanoseconds::max());
    result_.span = now_ - result_.first;
    return result_;
  }

 private:
  ClassTime& class_of(const DeviceEvent& event) {
    return result_.classes[static_cast<std::size_t>(event.kind)];
  }

  // Advances the time to `then`, across the ends of running events; if none runs, in one step.
  void until(Nanoseconds then) {
    while (!ends_.empty() && ends_.begin()->first <= then) {
      const auto [end, index] = *ends_.begin();
      pass(end);
      ends_.erase(ends_.begin());
      const DeviceEvent& event = *events_[index];
      running_.erase({work_of(event.kind), event.start, index});
      --kinds_[static_cast<std::size_t>(work_of(event.kind))];
    }
    if (then != Nanoseconds::max()) pass(then);
  }

  void pass(Nanoseconds then) {
    const Nanoseconds time = then - now_;
    if (time.count() <= 0) return;
    now_ = then;
    if (running_.empty()) {
      result_.idle += time;
      return;
    }
    class_of(*events_[std::get<2>(*running_.begin())]).wall += time;
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind)
      if (kinds_[kind] > 0) result_.busy[kind] += time;
    if (kinds_[static_cast<std::size_t>(DeviceWork::compute)] > 0 &&
        kinds_[static_cast<std::size_t>(DeviceWork::communication)] > 0)
      result_.overlapped += time;
  }

  const std::vector<const DeviceEvent*>& events_;
  DeviceTimes result_;
  Nanoseconds now_{};
  std::set<Running> running_;
  std::set<std::pair<Nanoseconds, std::size_t>> ends_;
  std::array<int, static_cast<std::size_t>(last_of(DeviceWork{})) + 1> kinds_{};
};

}  // namespace

DeviceTimes device_times(const std::vector<const DeviceEvent*>& events) {
  return events.empty() ? DeviceTimes{} : Sweep(events).run();
}

RankTimes rank_times(const DeviceTrace& trace) {
  std::vector<const DeviceEvent*> all;
  std::vector<std::vector<const DeviceEvent*>> by_step(trace.steps.size());
  for (const DeviceEvent& event : trace.events) {
    all.push_back(&event);
    if (event.step >= 0) by_step[static_cast<std::size_t>(event.step)].push_back(&event);
  }
  RankTimes result{device_times(all), {}};
  for (std::size_t step = 0; step < by_step.size(); ++step)
    if (!by_step[step].empty()) result.steps.push_back({step, device_times(by_step[step])});
  for (std::size_t i = 0; i + 1 < result.steps.size(); ++i) {
    const DeviceTimes& here = result.steps[i].times;
    result.steps[i].gap =
        std::max(Nanoseconds{}, result.steps[i + 1].times.first - here.first - here.span);
  }
  return result;
}

}  // namespace polyphony::traces
