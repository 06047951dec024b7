// The overlap of a collective with compute, and how they slow each other down.
//
// While the collective runs, it takes the fraction `taken` of the device's rates from the compute.
// With C the duration of the collective and W that of the compute that may overlap with it:
//   C ≤ W/(1 − taken)   the collective is completely hidden; the compute takes taken·C longer
//   otherwise           C − W/(1 − taken) of the collective is exposed, and the duration of the
//                       compute is W/(1 − taken)
// Own derivation. Values of `taken`: shared/hardware/software.h.
#pragma once

#include <algorithm>

#include "shared/hardware/software.h"
#include "shared/units.h"

namespace polyphony {

struct Overlap {
  Seconds exposed{};  // time of the collective that is not hidden
  Seconds delayed{};  // time by which it delays the compute
};

// Returns the fraction that a collective over this number of nodes takes.
inline double taken_by(const SoftwareStack& stack, int nodes) {
  return nodes > 1 ? stack.taken_between : stack.taken_inside;
}

// Returns the overlap of a collective with the compute that may hide it.
inline Overlap overlap(Seconds collective, Seconds compute, double taken) {
  const Seconds hidden = std::min(collective, compute / (1 - taken));
  return {collective - hidden, taken * hidden};
}

}  // namespace polyphony
