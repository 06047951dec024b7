// Cross-attention: the rows of each item attend to the rows that condition that item, without a
// mask.
//   query [L, A·D]; key_value [C, A·2·D], for each head k, then v (A heads on this rank, D wide);
//   out [L, A·D]
//   Item i has lengths[i] of the L rows and condition_lengths[i] of the C rows.
// An item without conditioning rows gets zeros. On devices one call covers all items
// (exec/attention_calls/packed_calls.h); on CPUs each item is a call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/attention_calls/packed_calls.h"

namespace polyphony::exec {

// Plans the calls; done once per forward pass, for all its blocks.
std::shared_ptr<const AttentionCalls> plan_cross(const std::vector<std::int64_t>& lengths,
                                                 const std::vector<std::int64_t>& condition_lengths,
                                                 torch::Device device);
// Returns the attention output [L, A·D]. `head_width` is D.
torch::Tensor cross_attention(const torch::Tensor& query, const torch::Tensor& key_value,
                              std::shared_ptr<const AttentionCalls> calls, std::int64_t head_width);

}  // namespace polyphony::exec
