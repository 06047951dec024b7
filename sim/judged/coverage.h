// Checks the predicted intervals against measurements, on rows that were not used in the fit.
// Errors and widths are natural logarithms of predicted / measured: 0.1 is about 10 %.
//   claim      The error of one row and the scale of its interval, predicted by a fit without the
//              row. Rows in held_out.json appear once for each cross-validation fold that excluded
//              them: a family or the largest scale (calibrated), a stack (uncalibrated: foreign), a
//              device (borrowed). Other rows use the shipped profile, with its calibration basis
//              (Footing, shared/hardware/certainty.h).
//   widths     Fitted without the block in question, if held_out.json has such widths.
//   score      Interval score at 90 %: the width of the interval, plus 2 / 0.1 times the distance
//              of the measurement from the interval. Also computed with one width for all rows, for
//              comparison.
// Source: Gneiting and Raftery, Strictly proper scoring rules, prediction, and estimation, JASA 102
// (2007), §6.2 (after Winkler 1972).
#pragma once

#include <array>

#include "sim/judged/held_out.h"
#include "sim/published/run.h"

namespace polyphony::sim {

inline constexpr std::array<double, 3> kShares = {0.5, 0.8, 0.9};
constexpr double kScored = 0.9;

struct Claim {
  std::string id, block;
  Footing footing = Footing::stated;
  double error = 0, scale = 0;
  int freedom = 0;                  // of Student's t; 0: normal
  std::optional<double> one_width;  // scale of the interval if all rows shared one width
};
// Returns the claims of all rows of time that have a belief, without duplicates and outliers.
std::vector<Claim> claims_of(const std::vector<RowResult>& results,
                             const std::optional<HeldOut>& held_out);

struct Coverage {
  std::string block;               // empty: all blocks
  std::optional<Footing> footing;  // absent: all
  std::size_t rows = 0;
  // By kShares: rows inside the interval, and the p-value of that number (two-sided binomial test).
  std::array<std::size_t, kShares.size()> inside{};
  std::array<double, kShares.size()> chance{};
  double half_width = 0;  // median, of the 90 % intervals
  double median = 0;      // of |error|
  double score = 0;       // mean interval score
  std::optional<double> one_width_score;
};
// Returns one entry per calibration basis and block, then one per calibration basis, then one of
// all.
std::vector<Coverage> coverage(const std::vector<Claim>& claims);

// Returns the scale of a row's interval for a calibration basis, with the widths of held_out.json:
// from the effects of the row (the effect of expert GEMMs is scaled to its own width) and the
// residual.
double scale_of(const RowResult& result, Footing footing, const Widths& widths);
// Returns the 90 % interval score of a value.
double interval_score(double low, double high, double value);

}  // namespace polyphony::sim
