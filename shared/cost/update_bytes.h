// What one optimizer step of a rank reads and writes: update_bytes() (shared/cost/compute_time.h) of every
// trained parameter in its shard.
#pragma once

#include "shared/program/program.h"

namespace polyphony {

Bytes moved_by_update(const Program& program, const Update& update);

}  // namespace polyphony
