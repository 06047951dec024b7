// How many kernels of a rank can wait for other ranks at the same time.
//
//   A kernel of NCCL keeps multiprocessors while it waits for its peers, and a kernel that computes
//   needs one to begin. If the kernels that wait take all, what they wait for may never be
//   computed. Each stream runs one kernel at a time: messages have a stream for each channel, the
//   "collective" stream one kernel, and compute ops one collective of their own.
#pragma once

#include "shared/program/program.h"

namespace polyphony {

// Multiprocessors of a message, which waits for its peer while others compute. Four move about 80
// GB/s between H100s on NVLink, so that 64 MiB take less than a millisecond. By default NCCL takes
// 16 in a group of two (src/enqueue.cc of NCCL 2.28). Megatron limits them in the same way (its
// option --nccl-communicator-config-path).
inline constexpr int kMessageProcessors = 4;

// Returns whether members of such a group exchange rows with each other, beside sums and gathers.
constexpr bool exchanges_rows(GroupKind kind) {
  return kind == GroupKind::expert || kind == GroupKind::context;
}

struct WaitingKernels {
  int messages = 0;     // channels that begin or end at the rank
  int collectives = 0;  // at most 2
};

// Returns the numbers of one rank. `program` may be the part of that rank.
WaitingKernels waiting_kernels(const Program& program, Rank rank);

}  // namespace polyphony
