// Which pairs of queries and keys attend in the double of a GPU's attention kernels
// (tests/exec/device_double/attention_kernels.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/torch_pch.h"
#include "shared/error.h"

namespace polyphony::exec::testing::queued {

using torch::Tensor;
using Number = std::optional<std::int64_t>;

// A rectangle: rows of the queries and keys, and which pairs of them attend.
struct Block {
  std::int64_t query, queries, key, keys;
  Tensor visible;  // [queries, keys]
};

// Key j is seen by query i when  first ≤ j − i ≤ last.
inline Tensor band(std::int64_t queries, std::int64_t keys, std::int64_t first, std::int64_t last) {
  Tensor visible = torch::zeros({queries, keys}, torch::kBool);
  auto at = visible.accessor<bool, 2>();
  for (std::int64_t i = 0; i < queries; ++i)
    for (std::int64_t j = 0; j < keys; ++j) at[i][j] = first <= j - i && j - i <= last;
  return visible;
}

template <class Band>
std::vector<Block> blocks(const Tensor& query_starts, const Tensor& key_starts, std::int64_t most_q,
                          std::int64_t most_k, Band visible) {
  std::vector<Block> all;
  const std::int32_t* const q = query_starts.const_data_ptr<std::int32_t>();
  const std::int32_t* const k = key_starts.const_data_ptr<std::int32_t>();
  for (std::int64_t b = 0; b + 1 < query_starts.numel(); ++b) {
    Block block{q[b], q[b + 1] - q[b], k[b], k[b + 1] - k[b], {}};
    POLYPHONY_CHECK(block.queries <= most_q && block.keys <= most_k,
                    "a longest sequence that is too short");
    block.visible = visible(block.queries, block.keys);
    all.push_back(block);
  }
  return all;
}

inline auto flash_band(bool causal, Number left, Number right, std::int64_t most_q,
                       std::int64_t most_k) {
  std::int64_t before = left.value_or(-1), behind = right.value_or(-1);
  if (most_q == 1) causal = false;
  if (causal) behind = 0;
  if (before >= most_k) before = -1;
  if (behind >= most_k) behind = -1;
  const bool local = before >= 0 || behind > 0;
  if (local && before < 0) before = most_k;
  if (local && behind < 0) behind = most_k;
  return [=](std::int64_t queries, std::int64_t keys) {
    const std::int64_t far = queries + keys;
    return band(queries, keys, before < 0 ? -far : keys - queries - before,
                behind < 0 ? far : keys - queries + behind);
  };
}
inline auto efficient_band(std::int64_t mask, Number window, bool backwards) {
  return [=](std::int64_t queries, std::int64_t keys) {
    const std::int64_t off = keys - queries, far = queries + keys, window_off = backwards ? 0 : off;
    return band(queries, keys, window ? window_off - *window + 1 : -far, mask == 2 ? off : far);
  };
}

}  // namespace polyphony::exec::testing::queued
