// Expands a compute op of a Program into kernels and inner collectives (shared/chunk/expand.h).
#pragma once

#include "shared/chunk/expand.h"
#include "shared/program/program.h"

namespace polyphony {

// Returns the kernels and collectives of a compute op; an empty Expansion for other ops.
Expansion expand(const Program& program, OpId op);
// Returns the parallel degrees and sizes with which the op's layers run on its rank.
ChunkContext chunk_context(const Program& program, const Compute& compute);

}  // namespace polyphony
