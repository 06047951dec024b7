// The memory of ranks at every change, as predict_memory() counts it: device and host apart.
//   Of changes at one instant the last counts, but where an op of no time frees what it has allocated: then both stand
//   there, so that the largest of the device's is its peak.
#pragma once

#include <utility>
#include <vector>

#include "shared/program/program.h"
#include "shared/program/timeline.h"

namespace polyphony {

struct MemoryCurve {
  using Points = std::vector<std::pair<Seconds, Bytes>>;
  Points device;  // from 0 on, or from an earlier change on
  Points host;    // empty: nothing goes there
};
// As many as `ranks`.
std::vector<MemoryCurve> memory_curves(const Program& program, const Timeline& timeline,
                                       const std::vector<Rank>& ranks);

}  // namespace polyphony
