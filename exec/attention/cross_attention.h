// Attention from the rows of items to the rows that condition them, item by item, without a mask.
//   query [L, A·D]; key_value [C, A·2·D], per head k, then v (A heads on this rank, D wide);
//   out [L, A·D]. Item i has lengths[i] of the L rows and condition_lengths[i] of the C.
//   An item that nothing conditions reads zeros.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/torch_pch.h"

namespace polyphony::exec {

torch::Tensor cross_attention(const torch::Tensor& query, const torch::Tensor& key_value,
                              const std::vector<std::int64_t>& lengths,
                              const std::vector<std::int64_t>& condition_lengths,
                              std::int64_t head_width);

}  // namespace polyphony::exec
