// The order in which one pipeline stage runs forwards and backwards of its microbatches.
//   stages S, this stage s (0 first), microbatches M
//   gpipe  F0 … F(M-1), B0 … B(M-1)
//   1f1b   min(S-s-1, M) forwards, then F and B in turn, then the remaining backwards
// Source: Huang et al., arXiv 1811.06965 (GPipe); Narayanan et al., arXiv 2104.04473 §2.2 (1F1B).
#pragma once

#include <vector>

#include "shared/layout.h"

namespace polyphony {

struct Slot {
  bool forward = true;
  int microbatch = 0;
  bool operator==(const Slot&) const = default;
};

std::vector<Slot> stage_order(ScheduleKind kind, int stages, int stage, int microbatches);

}  // namespace polyphony
