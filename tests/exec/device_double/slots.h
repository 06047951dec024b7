// Computes how many group kernels a device must be able to run at the same time
// (tests/exec/device_double/queued_backend.h).
#pragma once

#include "shared/program/program.h"
#include "tests/exec/device_double/queued_backend.h"

namespace polyphony::exec::testing {

int slots_held(torch::Device device);

// To the end of the scope.
struct Slots {
  explicit Slots(int slots) { limit_slots(slots); }
  ~Slots() { limit_slots(0); }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
};

// What the streams of a rank, the busiest one's, can have begun at a time: a stream has one op at a time, and of an
// exchange there is a kernel for each other rank and channel. With as many slots no kernel waits for one, so that a Program which
// verify() passes cannot wait for ever.
int most_kernels_at_a_time(const Program& program);

}  // namespace polyphony::exec::testing
