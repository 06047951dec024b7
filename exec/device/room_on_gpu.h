// Checks that a GPU has multiprocessors for the kernels that wait for other ranks and for those
// that compute (shared/program/waiting_kernels.h).
#pragma once

#include "shared/program/waiting_kernels.h"

namespace polyphony::exec {

// Returns why `processors` are too few for these kernels at the same time, with what to do; empty
// if they are enough.
//   A message takes at most kMessageProcessors, a collective 32,
//   NCCL's own limit; NCCL_MAX_CTAS replaces both (NCCL user guide, "Environment Variables"). At
//   least 16 must be left for kernels that compute: one would do, slowly.
std::string lacks_processors(const WaitingKernels& kernels, int processors);

}  // namespace polyphony::exec
