// Attention from the rows of items to the rows that condition them, each item's to its own, without a mask.
//   query [L, A·D]; key_value [C, A·2·D], per head k, then v (A heads on this rank, D wide);
//   out [L, A·D]. Item i has lengths[i] of the L rows and condition_lengths[i] of the C.
//   An item that nothing conditions reads zeros.
//   On devices one call has all items (exec/attention/packed_calls.h), on CPUs each is a call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "exec/attention/packed_calls.h"

namespace polyphony::exec {

// Made once a forward, for all its blocks.
std::shared_ptr<const AttentionCalls> plan_cross(const std::vector<std::int64_t>& lengths,
                                                 const std::vector<std::int64_t>& condition_lengths,
                                                 torch::Device device);
torch::Tensor cross_attention(const torch::Tensor& query, const torch::Tensor& key_value,
                              std::shared_ptr<const AttentionCalls> calls, std::int64_t head_width);

}  // namespace polyphony::exec
