// Short runs that tell what this machine does: matrix products, attention, memory copies, messages
// and all-reduces, one median each. Writes the records of traces/calibrate/machine_profile.h as JSON lines.
// With one rank only the compute records; with two or more, each rank times compute while all of
// them do (so shared caches and cores count), and rank 0 writes.
#pragma once

#include <functional>
#include <string>

#include "exec/transport/communicator.h"
#include "shared/units.h"

namespace polyphony::exec {

struct MicrobenchOptions {
  Seconds per_point{0.15};                            // time spent on one record
  std::function<void(int done, int total)> progress;  // may be empty
};

// Collective. The text on rank 0, empty elsewhere.
std::string run_microbench(Transport& transport, const MicrobenchOptions& options);

}  // namespace polyphony::exec
