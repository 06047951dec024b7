// Tables of `polyphony validate`: stated intervals and probabilities compared with what was
// measured.
#pragma once

#include "sim/judged/coverage.h"
#include "sim/judged/reliability.h"
#include "sim/judged/smallest.h"

namespace polyphony::sim {

void print_coverage(const std::vector<Claim>& claims);
void print_reliability(const std::vector<JudgedPair>& pairs);
void print_smallest(const std::vector<SmallestFit>& fits);

}  // namespace polyphony::sim
