// Memory of every rank over a step: a pure function of (Program, Timeline). Parameters, gradients
// and optimizer state are held throughout; buffers live from the op that allocates them to the op
// that frees them.
#pragma once

#include <array>
#include <vector>

#include "shared/program/program.h"
#include "shared/program/timeline.h"

namespace polyphony {

inline constexpr std::size_t kBufferKinds = 8;

struct RankMemory {
  Bytes peak{};
  Seconds when{};
  std::array<Bytes, kBufferKinds> at_peak{};  // by BufferKind; the host's has no part in the peak
  Bytes host{};                               // the most that waits in the host's memory
};
std::vector<RankMemory> predict_memory(const Program& program, const Timeline& timeline);

// The memory of one rank at every change, for pictures: (time, total).
std::vector<std::pair<Seconds, Bytes>> memory_curve(const Program& program,
                                                    const Timeline& timeline, Rank rank);

}  // namespace polyphony
