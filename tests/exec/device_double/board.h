// Records what the group kernels of all queued devices wait for, and detects deadlocks. Internal to
// tests/exec/device_double/.
//
// A group kernel takes one of its device's slots when it is next on its stream, and keeps the slot
// until it ends, as NCCL's kernels keep multiprocessors while they wait for their peers. With
// limit_slots() a kernel waits if no slot is free.
//
// A kernel that computes needs a free slot to begin, too.
//
// Three things wait: a kernel without a slot, until any kernel that has one ends; a kernel with a
// slot, until all members of its group have arrived; and a stream, for the stream of an event.
// Kernels that wait for each other for ever are detected as soon as the last of them begins to
// wait, and fail with an error that names them. Calls that a host has not queued yet may still
// arrive.
// Source of the hazard: NCCL user guide, "Using multiple NCCL communicators concurrently".
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/exec/device_double/streams.h"

namespace polyphony::exec::testing::queued {

// A group kernel, from when it is next on its stream until it ends.
struct GroupKernel {
  Queue* stream = nullptr;
  c10::DeviceIndex device = 0;
  std::string what;  // "all-reduce of 4 Double, call 2 of group all"
  bool holds = false;
  // Streams on which the calls of its missing members are queued; calls that are not queued are
  // omitted.
  std::function<std::vector<Queue*>()> missing = {};
};

class Board {
 public:
  std::mutex mutex;  // protects the members below, and all meetings
  std::condition_variable changed;

  std::atomic<int> slots{0};                                           // per device; 0: unlimited
  std::map<c10::DeviceIndex, std::list<GroupKernel*>> wants, holders;  // in order of arrival
  std::map<Queue*, GroupKernel*> heads;  // group kernels that are next on their streams
  struct EventWait {
    Event event;
    std::int64_t version;
    Queue* recorded_on;
  };
  std::map<Queue*, EventWait> event_waits;  // while slots are limited
  std::set<const GroupKernel*> dead;  // kernels that wait for ever; each must throw `deadlock`
  std::string deadlock;

  // Records that a stream waits for an event.
  void waits(Queue& stream, EventWait wait);
  void waits_no_more(Queue& stream);
  // Call with the lock held. Waits for a slot; throws if none will ever be free. Returns false if
  // `ends` returned true first. The kernel must call look() when it has provided what others wait
  // for.
  bool take_slot(std::unique_lock<std::mutex>& lock, GroupKernel& kernel,
                 const std::function<bool()>& ends);
  void leave(GroupKernel& kernel);
  // Waits until a kernel that computes finds a free slot, in which it begins. It does not keep it,
  // because it ends by itself.
  void begin_compute(Queue& stream, c10::DeviceIndex device, const std::string& name);
  // Call with the lock held, after a new wait or a newly queued kernel. Finds kernels that wait for
  // ever.
  void look();
  void throw_if_dead(const GroupKernel& kernel) const;

  struct Break {
    std::string group, words;
  };
  std::map<c10::DeviceIndex, Break> breaks;  // break_group()

 private:
  std::set<Queue*> stuck_streams() const;
  std::string in_words(const std::set<Queue*>& stuck) const;
};

Board& board();

}  // namespace polyphony::exec::testing::queued
