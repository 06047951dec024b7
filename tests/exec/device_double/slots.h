// Computes how many group kernels a device must be able to run at the same time
// (tests/exec/device_double/queued_backend.h).
#pragma once

#include "shared/program/program.h"
#include "tests/exec/device_double/queued_backend.h"

namespace polyphony::exec::testing {

int slots_held(torch::Device device);

// Limits the slots until the end of the scope.
struct Slots {
  explicit Slots(int slots) { limit_slots(slots); }
  ~Slots() { limit_slots(0); }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
};

// Returns the largest number of group kernels that the streams of any rank can have begun at the
// same time: a stream runs one op at a time, and an exchange has one kernel for each other rank and
// channel. With this many slots no kernel waits for a slot, so a Program that passes verify() never
// deadlocks.
int most_kernels_at_a_time(const Program& program);

}  // namespace polyphony::exec::testing
