// What is inside a compute op of a Program: shared/chunk/expand.h.
#pragma once

#include "shared/chunk/expand.h"
#include "shared/program/program.h"

namespace polyphony {

// Empty for other ops.
Expansion expand(const Program& program, OpId op);
ChunkContext chunk_context(const Program& program, const Compute& compute);

}  // namespace polyphony
