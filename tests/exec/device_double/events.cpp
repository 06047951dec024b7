// Events of the queued device (tests/exec/device_double/streams.h).
#include <algorithm>
#include <chrono>

#include "tests/exec/device_double/board.h"
#include "tests/exec/device_double/streams.h"

namespace polyphony::exec::testing::queued {

namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void record(const Event& event, const c10::Stream& stream) {
  Queue& on = queue(stream.device(), stream.id());
  std::int64_t version = 0;
  {
    const std::scoped_lock lock(event->mutex);
    version = ++event->recorded;
    event->device = stream.device_index();
    event->queue = &on;
  }
  on.push(
      [event, version] {
        {
          const std::scoped_lock lock(event->mutex);
          event->reached = std::max(event->reached, version);
          event->at_ms = now_ms();
        }
        event->changed.notify_all();
      },
      false);
}

void await(const Event& event) {
  std::unique_lock lock(event->mutex);
  const std::int64_t version = event->recorded;
  event->changed.wait(lock, [&] { return event->reached >= version; });
}

bool reached(const Event& event) {
  const std::scoped_lock lock(event->mutex);
  return event->reached >= event->recorded;
}
bool reached(const Event& event, std::int64_t version) {
  const std::scoped_lock lock(event->mutex);
  return event->reached >= version;
}

void block(const Event& event, const c10::Stream& stream) {
  if (seeded() == SeededFault::missing_wait) return;
  std::int64_t version = 0;
  Queue* recorded_on = nullptr;
  {
    const std::scoped_lock lock(event->mutex);
    version = event->recorded;
    recorded_on = event->queue;
    if (event->reached >= version) return;
  }
  Queue& waits = queue(stream.device(), stream.id());
  waits.push(
      [event, version, recorded_on, &waits] {
        const bool looked_at = board().slots > 0;
        if (looked_at) board().waits(waits, {event, version, recorded_on});
        {
          std::unique_lock lock(event->mutex);
          event->changed.wait(lock, [&] { return event->reached >= version; });
        }
        if (looked_at) board().waits_no_more(waits);
      },
      false);
}

}  // namespace polyphony::exec::testing::queued
