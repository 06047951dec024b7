#include "tests/exec/device_double/board.h"

#include <algorithm>

#include "tests/exec/device_double/queued_backend.h"

namespace polyphony::exec::testing::queued {

Board& board() {
  static auto* const one = new Board;  // threads outlive main()
  return *one;
}

bool Board::take_slot(std::unique_lock<std::mutex>& lock, GroupKernel& kernel,
                      const std::function<bool()>& ends) {
  heads[kernel.stream] = &kernel;
  std::list<GroupKernel*>& queue = wants[kernel.device];
  std::list<GroupKernel*>& held = holders[kernel.device];
  queue.push_back(&kernel);
  look();
  changed.wait(lock, [&] {
    return ends() || dead.contains(&kernel) ||
           (queue.front() == &kernel && (slots == 0 || static_cast<int>(held.size()) < slots));
  });
  queue.remove(&kernel);
  changed.notify_all();
  throw_if_dead(kernel);
  if (ends()) return false;
  held.push_back(&kernel);
  kernel.holds = true;
  return true;
}

void Board::begin_compute(Queue& stream, c10::DeviceIndex device, const std::string& name) {
  std::unique_lock lock(mutex);
  GroupKernel kernel{&stream, device, name};
  try {
    take_slot(lock, kernel, [] { return false; });
  } catch (...) {
    leave(kernel);
    throw;
  }
  leave(kernel);
}

void Board::waits(Queue& stream, EventWait wait) {
  const std::scoped_lock lock(mutex);
  event_waits[&stream] = std::move(wait);
  look();
}

void Board::waits_no_more(Queue& stream) {
  const std::scoped_lock lock(mutex);
  event_waits.erase(&stream);
}

void Board::leave(GroupKernel& kernel) {
  wants[kernel.device].remove(&kernel);
  holders[kernel.device].remove(&kernel);
  heads.erase(kernel.stream);
  dead.erase(&kernel);
  changed.notify_all();
}

void Board::throw_if_dead(const GroupKernel& kernel) const {
  if (dead.contains(&kernel)) throw std::runtime_error(deadlock);
}

// The largest set of streams of which each waits for others of the set alone.
std::set<Queue*> Board::stuck_streams() const {
  std::set<Queue*> stuck;
  for (const auto& [stream, kernel] : heads) stuck.insert(stream);
  for (const auto& [stream, wait] : event_waits)
    if (!reached(wait.event, wait.version)) stuck.insert(stream);
  const auto waits_for_stuck = [&](Queue* stream) {
    if (const auto wait = event_waits.find(stream); wait != event_waits.end())
      return stuck.contains(wait->second.recorded_on);
    const GroupKernel& kernel = *heads.at(stream);
    if (!kernel.holds) {
      const std::list<GroupKernel*>& held = holders.at(kernel.device);
      return static_cast<int>(held.size()) >= slots &&
             std::all_of(held.begin(), held.end(),
                         [&](const GroupKernel* one) { return stuck.contains(one->stream); });
    }
    const std::vector<Queue*> missing = kernel.missing();
    return std::any_of(missing.begin(), missing.end(),
                       [&](Queue* one) { return stuck.contains(one); });
  };
  while (std::erase_if(stuck, [&](Queue* stream) { return !waits_for_stuck(stream); }) > 0) {
  }
  return stuck;
}

// Once round.
std::string Board::in_words(const std::set<Queue*>& stuck) const {
  const auto next = [&](Queue* stream) -> Queue* {
    if (const auto wait = event_waits.find(stream); wait != event_waits.end())
      return wait->second.recorded_on;
    const GroupKernel& kernel = *heads.at(stream);
    if (!kernel.holds) return holders.at(kernel.device).front()->stream;
    const std::vector<Queue*> missing = kernel.missing();
    return *std::find_if(missing.begin(), missing.end(),
                         [&](Queue* one) { return stuck.contains(one); });
  };
  std::set<Queue*> seen;
  Queue* at = *stuck.begin();
  while (seen.insert(at).second) at = next(at);
  std::string text;
  Queue* const first = at;
  do {
    if (const auto kernel = heads.find(at); kernel != heads.end())
      text += (text.empty() ? "" : " <- ") + ("rank " + std::to_string(kernel->second->device)) +
              ": " + kernel->second->what +
              (kernel->second->holds ? " (waits for others)" : " (waits for a slot)");
    at = next(at);
  } while (at != first);
  return "deadlock with " + std::to_string(slots) + " slots: " + text;
}

void Board::look() {
  if (slots == 0 || !dead.empty()) return;
  const std::set<Queue*> stuck = stuck_streams();
  if (stuck.empty()) return;
  deadlock = in_words(stuck);
  for (const auto& [stream, kernel] : heads)
    if (stuck.contains(stream)) dead.insert(kernel);
  changed.notify_all();
}

}  // namespace polyphony::exec::testing::queued

namespace polyphony::exec::testing {

void limit_slots(int slots) {
  queued::Board& all = queued::board();
  const std::scoped_lock lock(all.mutex);
  all.slots = slots;
}

void break_group(torch::Device device, const std::string& group, const std::string& words) {
  queued::Board& all = queued::board();
  const std::scoped_lock lock(all.mutex);
  all.breaks[device.index()] = {group, words};
}

}  // namespace polyphony::exec::testing
