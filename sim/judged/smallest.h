// What one step time moves: of each family of published rows, the rows on its fewest devices are in turn
// the only evidence, and the family's other rows are predicted before and after.
//   before   by fits that saw no row of the family (held_out.json's family_out: known), of the stack
//            (stack_out: foreign), of the device (device_out: borrowed), on their widths without the block
//   after    the profile's errors corrected by the evidence (traces/calibrate/posterior.h,
//            evidence_prior.h), as `polyphony calibrate` does; the effects are those of numbers as
//            shipped, taken as constant
// Errors and widths are logarithms. Rows of the evidence that are outliers by its rule move nothing.
#pragma once

#include "sim/judged/coverage.h"

namespace polyphony::sim {

struct SmallestSide {
  double mean = 0, median = 0;  // of |error|
  double inside = 0;            // share of 90 % intervals that hold what was measured
  double half_width = 0;        // mean of the 90 % intervals'
};
struct SmallestFit {
  std::string block;  // empty: of all
  Footing footing = Footing::known;
  std::size_t families = 0, evidence = 0, outliers = 0;  // outliers: of the evidence
  double rows = 0;  // predicted, each once, whatever evidence was taken in turn
  SmallestSide before, after;
};
// By footing and block, then by footing.
std::vector<SmallestFit> fit_smallest(const std::vector<RowResult>& results,
                                      const HeldOut& held_out);

}  // namespace polyphony::sim
