// Intervals and probabilities held against what happened, as tables of `polyphony validate`.
#pragma once

#include "sim/published/coverage.h"
#include "sim/published/reliability.h"
#include "sim/published/smallest.h"

namespace polyphony::sim {

void print_coverage(const std::vector<Claim>& claims);
void print_reliability(const std::vector<JudgedPair>& pairs);
void print_smallest(const std::vector<SmallestFit>& fits);

}  // namespace polyphony::sim
