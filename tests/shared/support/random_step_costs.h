// Random steps: one to three branches on one to four ranks, virtual stages, sub-microbatches,
// microbatches without encoder work, frozen branches, messages, and memory for 1 to 3 of the
// largest microbatches or for all.
#pragma once

#include <algorithm>

#include "shared/planner/step_costs.h"
#include "shared/random.h"

namespace polyphony::test {

struct StepSizes {
  int ranks = 4, microbatches = 8, rounds = 2, parts = 3;  // upper limits
};

inline StepCosts random_step_costs(std::uint64_t seed, const StepSizes& most = {}) {
  std::uint64_t drawn = 0;
  const auto draw = [&](int below) {
    return static_cast<int>(random_uniform(seed, drawn++) * below);
  };
  StepCosts costs{1 + draw(most.ranks), 1 + draw(most.microbatches), {}, {}};
  const int branches = 1 + draw(3);
  const bool chained = draw(2) == 0;
  for (int b = 0; b < branches; ++b) {
    BranchCosts branch{"branch " + std::to_string(b), {}, {}, {}};
    const bool last = b + 1 == branches;
    if (!last) branch.feeds = chained ? static_cast<std::size_t>(b) + 1 : branches - 1;
    branch.learns = last || b > 0 || draw(4) > 0;
    const int rounds = 1 + draw(most.rounds), parts = last ? 1 : 1 + draw(most.parts);
    for (int s = 0; s < rounds * costs.ranks; ++s) branch.rank_of_stage.push_back(s % costs.ranks);
    for (int k = 0; k < costs.microbatches; ++k)
      for (int p = last ? 0 : draw(2); p < parts; ++p) branch.microbatch_of.push_back(k);
    for (int s = 0; s < branch.stages(); ++s)
      for (int w = 0; w < branch.works(); ++w)
        branch.costs.push_back({Seconds(1 + draw(9)), Seconds(1 + draw(9)), Seconds(1 + draw(9)),
                                Bytes(draw(6)), Seconds(0.25 * draw(8))});
    costs.branches.push_back(branch);
  }
  if (draw(3) == 0) return costs;
  const int times = 1 + draw(3);
  for (int r = 0; r < costs.ranks; ++r) {
    Bytes largest{};
    for (int k = 0; k < costs.microbatches; ++k) {
      Bytes sum{};
      for (const BranchCosts& branch : costs.branches)
        for (int s = 0; s < branch.stages(); ++s)
          for (int w = 0; w < branch.works(); ++w)
            if (branch.learns && branch.rank_of_stage[static_cast<std::size_t>(s)] == r &&
                branch.microbatch_of[static_cast<std::size_t>(w)] == k)
              sum += branch.cost(s, w).kept;
      largest = std::max(largest, sum);
    }
    costs.capacity.push_back(largest * times);
  }
  return costs;
}

}  // namespace polyphony::test
