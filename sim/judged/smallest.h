// Measures how much calibration with a single step time improves predictions. In each family of
// published rows, each row on the smallest number of devices is used as the only evidence, and the
// other rows of the family are predicted before and after.
//   before   by fits without the family (held_out.json's family_out: calibrated), without the stack
//            (stack_out: foreign), or without the device (device_out: borrowed), with widths fitted
//            without the block
//   after    with the profile corrected by the evidence (traces/calibrate/posterior.h,
//            evidence_prior.h), and with what that does not explain (shared/chance/misses.h), as
//            `polyphony calibrate` does; the effects of the profile's errors
//            are those of the shipped values, assumed constant
// Errors and widths are natural logarithms. Evidence that calibration rejects as an outlier changes
// nothing.
#pragma once

#include "sim/judged/coverage.h"

namespace polyphony::sim {

struct SmallestSide {
  double mean = 0, median = 0;  // of |error|
  double inside = 0;            // share of 90 % intervals that contain the measurement
  double half_width = 0;        // mean over the 90 % intervals
};
struct SmallestFit {
  std::string block;  // empty: all blocks
  Footing footing = Footing::known;
  std::size_t families = 0, evidence = 0, outliers = 0;  // outliers: among the evidence
  double rows = 0;  // number of predicted rows; each counts once, for all its evidence together
  SmallestSide before, after;
};
// Returns one entry per calibration basis and block, then one per calibration basis.
std::vector<SmallestFit> fit_smallest(const std::vector<RowResult>& results,
                                      const HeldOut& held_out);

}  // namespace polyphony::sim
