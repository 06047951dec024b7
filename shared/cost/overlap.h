// What compute and a collective beside it cost each other. While the collective runs it takes
// `taken` of the device's rates; `beside` of the compute may stand at its side. C the collective, W
// that compute:
//   C ≤ W/(1 − taken)   nothing of C shows; taken·C of the compute is made up for later
//   else                C − W/(1 − taken) shows; W took W/(1 − taken)
// Own count. Values of `taken`: shared/hardware/software.h.
#pragma once

#include <algorithm>

#include "shared/units.h"

namespace polyphony {

struct Overlap {
  Seconds exposed{};  // of the collective
  Seconds delayed{};  // compute that it delayed
};

inline Overlap overlap(Seconds collective, Seconds beside, double taken) {
  const Seconds hidden = std::min(collective, beside / (1 - taken));
  return {collective - hidden, taken * hidden};
}

}  // namespace polyphony
