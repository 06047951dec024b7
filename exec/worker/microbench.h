// Microbenchmarks of this machine: matrix multiplications, attention, memory copies, messages and
// all-reduces; one median each. Returns the records of traces/calibrate/machine_profile.h as JSON
// lines. With one rank it makes only the compute records. With several, all ranks compute at the
// same time, so that contention for shared caches and cores is included, and rank 0 writes the
// records.
#pragma once

#include <functional>
#include <string>

#include "exec/transport/communicator.h"
#include "shared/units.h"

namespace polyphony::exec {

struct MicrobenchOptions {
  Seconds per_point{0.15};                            // measuring time per record
  std::function<void(int done, int total)> progress;  // may be empty
};

// Returns the text on rank 0, and an empty text on other ranks. Collective.
std::string run_microbench(Transport& transport, const MicrobenchOptions& options);

}  // namespace polyphony::exec
