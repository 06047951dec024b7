// A token mask as a dense matrix, pair by pair.
#pragma once

#include <cmath>
#include <vector>

#include "exec/torch_pch.h"
#include "shared/work/token_mask.h"

namespace polyphony::exec::testing {

// [tokens, tokens]: 0 where a query sees a key, else −∞.
inline torch::Tensor dense(const TokenMask& mask, std::int64_t window) {
  const torch::Tensor scores =
      torch::full({mask.tokens(), mask.tokens()}, -INFINITY, torch::kFloat64);
  auto score = scores.accessor<double, 2>();
  for (const MaskRun& query : mask.runs)
    for (const MaskRun& key : mask.runs)
      for (std::int64_t q = query.tokens.begin; q < query.tokens.end; ++q)
        for (std::int64_t k = key.tokens.begin; k < key.tokens.end; ++k) {
          const bool attended = query.attends.begin <= key.group && key.group < query.attends.end;
          const bool both_ways = !query.causal && query.group == key.group;
          if (attended && (k <= q || both_ways) && (window == 0 || std::abs(q - k) < window))
            score[q][k] = 0;
        }
  return scores;
}

inline torch::Tensor rows_of(const std::vector<Interval>& intervals) {
  std::vector<torch::Tensor> rows;
  for (const Interval& interval : intervals)
    rows.push_back(torch::arange(interval.begin, interval.end, torch::kInt64));
  return torch::cat(rows);
}

inline double off(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).norm() / b.norm().clamp_min(1e-300)).item<double>();
}

}  // namespace polyphony::exec::testing
