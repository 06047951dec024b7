// Checks the predicted probability that layout A is faster than B against measurements: for pairs
// of comparable published layouts, both predicted by fits without these rows.
//   stated    P(the layout that is predicted to be faster is faster), 0.5 to 1
//   happened  share of the pairs in which it was measured to be faster
//
// Widths of the differences are those fitted without the pair's family, if held_out.json has them.
// Pairs share layouts, so n pairs contain less information than n independent ones.
#pragma once

#include "sim/judged/held_out.h"
#include "sim/judged/pairs.h"

namespace polyphony::sim {

struct JudgedPair {
  std::string block;
  double stated = 0.5;
  bool happened = false;
  bool tied = false;             // the 90 % interval of the difference contains zero
  std::array<bool, 3> inside{};  // by kShares: the interval contains the measured difference
};
// Evaluates all pairs, except those with equal measurements.
std::vector<JudgedPair> judge_pairs(const std::vector<RowResult>& results,
                                    const std::optional<HeldOut>& held_out);

struct ReliabilityBin {
  double low = 0, high = 0;  // of the stated probability
  double stated = 0;         // mean
  double happened = 0;       // share
  std::size_t pairs = 0;
};
// Returns the pairs by bins of the stated probability, without empty bins.
std::vector<ReliabilityBin> reliability(const std::vector<JudgedPair>& pairs);

}  // namespace polyphony::sim
