// What compute and a collective beside it cost each other. While the collective runs it takes
// `taken` of the device's rates; `beside` of the compute may stand at its side. C the collective, W
// that compute:
//   C ≤ W/(1 − taken)   nothing of C shows; taken·C of the compute is made up for later
//   else                C − W/(1 − taken) shows; W took W/(1 − taken)
// Own count. Values of `taken`: shared/hardware/software.h.
#pragma once

#include <algorithm>

#include "shared/hardware/software.h"
#include "shared/units.h"

namespace polyphony {

struct Overlap {
  Seconds exposed{};  // of the collective
  Seconds delayed{};  // compute that it delayed
};

// By a collective over a ring of so many nodes.
inline double taken_by(const SoftwareStack& stack, int nodes) {
  return nodes > 1 ? stack.taken_between : stack.taken_inside;
}

inline Overlap overlap(Seconds collective, Seconds beside, double taken) {
  const Seconds hidden = std::min(collective, beside / (1 - taken));
  return {collective - hidden, taken * hidden};
}

}  // namespace polyphony
