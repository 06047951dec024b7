// Whose memory is it? The samples that a rank's live buffers belong to at one moment.
//   A buffer that a compute op allocated is divided among the samples (of an encoder: the items) of
//   its work by their rows in that module. Boundaries that messages fill, parameters, gradients and
//   optimizer state belong to nobody. Rows, not their squares: attention that keeps whole scores
//   weighs long samples more than this says.
#pragma once

#include <vector>

#include "shared/program/program.h"
#include "shared/program/timeline.h"

namespace polyphony {

struct HeldSample {
  std::uint32_t sample = 0;  // position in Program::batch
  Bytes bytes{};
  bool operator==(const HeldSample&) const = default;
};
// Largest first; equal ones in batch order.
std::vector<HeldSample> held_samples(const Program& program, const Timeline& timeline, Rank rank,
                                     Seconds when);

}  // namespace polyphony
