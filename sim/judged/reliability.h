// P(A beats B) held against what happened: pairs of published layouts of one question, both
// predicted by fits that saw neither.
//   stated    P(the layout that is predicted faster is faster), 0.5 to 1
//   happened  share of the pairs in which it was measured faster
// The widths of a difference are those fitted without the pair's family, where held_out.json has
// them. Pairs share layouts: n of them know less than n independent ones would.
#pragma once

#include "sim/judged/held_out.h"
#include "sim/judged/pairs.h"

namespace polyphony::sim {

struct JudgedPair {
  std::string block;
  double stated = 0.5;
  bool happened = false;
  bool tied = false;             // the 90 % interval of the difference holds zero
  std::array<bool, 3> inside{};  // the truth in the intervals of kShares
};
// Pairs measured alike are left out.
std::vector<JudgedPair> judge_pairs(const std::vector<RowResult>& results,
                                    const std::optional<HeldOut>& held_out);

struct ReliabilityBin {
  double low = 0, high = 0;  // of the stated probability
  double stated = 0;         // mean
  double happened = 0;       // share
  std::size_t pairs = 0;
};
// Bins without a pair are left out.
std::vector<ReliabilityBin> reliability(const std::vector<JudgedPair>& pairs);

}  // namespace polyphony::sim
