// Attributes the memory of a rank at one moment to the samples of the batch.
//
// A buffer that a compute op allocated is divided among the samples of its microbatch (of an
// encoder: among the items), in proportion to their rows in that module. Boundary buffers that
// messages fill, parameters, gradients and optimizer state are not attributed to samples.
//
// Not modeled: attention that saves whole score matrices, whose memory grows with the square of the
// rows; it gives long samples a larger share than this function.
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
// Returns the samples that have memory on `rank` at time `when`, largest first; equal ones in batch
// order.
std::vector<HeldSample> held_samples(const Program& program, const Timeline& timeline, Rank rank,
                                     Seconds when);

}  // namespace polyphony
