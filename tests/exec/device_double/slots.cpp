#include "tests/exec/device_double/slots.h"

#include <algorithm>

#include "shared/program/waiting_kernels.h"
#include "tests/exec/device_double/board.h"

namespace polyphony::exec::testing {

int slots_held(torch::Device device) {
  const std::scoped_lock lock(queued::board().mutex);
  return static_cast<int>(queued::board().holders[device.index()].size());
}

int most_kernels_at_a_time(const Program& program) {
  int most = 0;
  for (std::uint32_t r = 0; r < program.rank_ops.size(); ++r) {
    const WaitingKernels kernels = waiting_kernels(program, Rank(r));
    most = std::max(most, kernels.messages + kernels.collectives);
  }
  return most;
}

}  // namespace polyphony::exec::testing
