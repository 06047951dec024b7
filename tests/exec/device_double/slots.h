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

// Returns the largest number of group kernels that any rank can have waiting at the same time
// (shared/program/waiting_kernels.h). With one slot more, in which compute kernels run, no kernel
// waits for a slot for ever.
int most_kernels_at_a_time(const Program& program);

}  // namespace polyphony::exec::testing
