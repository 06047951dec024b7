// How many kernels of a rank can wait for other ranks at the same time.
//
//   A kernel of NCCL keeps multiprocessors while it waits for its peers, and a kernel that computes
//   needs one to begin. If the kernels that wait take all, what they wait for may never be
//   computed. Each stream runs one kernel at a time: messages have a stream for each channel, the
//   "collective" stream one kernel, and compute ops one collective of their own.
#pragma once

#include "shared/program/program.h"

namespace polyphony {

struct WaitingKernels {
  int messages = 0;     // channels that begin or end at the rank
  int collectives = 0;  // at most 2
};

// Returns the numbers of one rank. `program` may be the part of that rank.
WaitingKernels waiting_kernels(const Program& program, Rank rank);

}  // namespace polyphony
