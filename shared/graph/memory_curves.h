// The memory of ranks after every change, as predict_memory() counts it; device and host
// separately. Several changes at the same time are merged into one point. An op of zero duration
// that frees what it has allocated adds two points, so that the largest point of the device is its
// peak.
#pragma once

#include <utility>
#include <vector>

#include "shared/program/program.h"
#include "shared/program/timeline.h"

namespace polyphony {

struct MemoryCurve {
  using Points = std::vector<std::pair<Seconds, Bytes>>;
  Points device;  // starts at time 0, or at an earlier change
  Points host;    // empty: the host's memory is not used
};
// Returns one curve for each entry of `ranks`.
std::vector<MemoryCurve> memory_curves(const Program& program, const Timeline& timeline,
                                       const std::vector<Rank>& ranks);

}  // namespace polyphony
