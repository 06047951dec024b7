// The memory traffic of one optimizer step of a rank.
#pragma once

#include "shared/program/program.h"

namespace polyphony {

// Returns the bytes that the update reads and writes: update_bytes() (shared/cost/compute_time.h)
// for each trained parameter in the rank's shard.
Bytes moved_by_update(const Program& program, const Update& update);

}  // namespace polyphony
