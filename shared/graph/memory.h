// The memory of every rank over a step, computed from a Program and a Timeline.
// Parameters, gradients and optimizer state are resident for the whole step. A buffer is resident
// from the start of the op that allocates it to the end of the op that frees it.
#pragma once

#include <array>
#include <vector>

#include "shared/program/program.h"
#include "shared/program/timeline.h"

namespace polyphony {

inline constexpr std::size_t kBufferKinds = 8;

struct RankMemory {
  Bytes peak{};                               // largest device memory during the step
  Seconds when{};                             // time of the peak
  std::array<Bytes, kBufferKinds> at_peak{};  // by BufferKind; `host` is not part of the peak
  Bytes host{};                               // largest memory of the host during the step
  Bytes libraries{};  // besides tensors (shared/graph/library_memory.h); not part of the peak
  Bytes needed() const { return peak + libraries; }
};
// Returns the memory of each rank, by rank.
std::vector<RankMemory> predict_memory(const Program& program, const Timeline& timeline);

// Returns the device memory of one rank after every change, for plots: (time, total bytes).
std::vector<std::pair<Seconds, Bytes>> memory_curve(const Program& program,
                                                    const Timeline& timeline, Rank rank);

}  // namespace polyphony
