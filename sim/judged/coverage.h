// Intervals held against what happened, on rows that no fit saw. Errors and widths are natural
// logarithms of predicted over measured: 0.1 is about 10 %.
//   claim      one row, predicted without it: its error, the scale of its interval. Rows of
//              held_out.json by each fold that left them out: a family or the largest scale (stack
//              and device known), a stack (foreign), a device (borrowed). Other rows as they are,
//              on the footing of their profile (shared/hardware/certainty.h).
//   widths     fitted without the block that is judged, where held_out.json has them
//   score      interval score at 90 %: the interval's width, and 2 / 0.1 times how far outside the
//              truth lies; that of one width for all rows beside it
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
  int freedom = 0;
  std::optional<double> one_width;  // scale of the width that all rows share
};
// Of rows of time that have a belief; duplicates and outliers are left out.
std::vector<Claim> claims_of(const std::vector<RowResult>& results,
                             const std::optional<HeldOut>& held_out);

struct Coverage {
  std::string block;  // empty: of all
  std::optional<Footing> footing;
  std::size_t rows = 0;
  std::array<std::size_t, kShares.size()> inside{};  // of the intervals that hold kShares
  std::array<double, kShares.size()> chance{};       // two-sided binomial test
  double half_width = 0;                             // median, of 90 %
  double median = 0;                                 // of |error|
  double score = 0;
  std::optional<double> one_width_score;
};
// By footing and block, then by footing, then of all.
std::vector<Coverage> coverage(const std::vector<Claim>& claims);

// The scale of a row's interval on a footing, under widths of held_out.json: its effects, those of
// experts in proportion to their own width, and the residual.
double scale_of(const RowResult& result, Footing footing, const Widths& widths);
double interval_score(double low, double high, double value);

}  // namespace polyphony::sim
