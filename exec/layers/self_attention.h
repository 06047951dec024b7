// The attention part of a block, between its norm and its residual sum: x [rows, H] -> [rows, H].
//   qkv = x Wqkvᵀ + b, cut by key/value heads, heads normed (exec/attention/qk_norm.h);  out(attention(qkv))
//   More tensor-parallel ranks than key/value heads: each has a copy of one, and some of its query
//   heads (Cut::heads, shared/chunk/parameters.h).
// Which attention: exec/attention/attention.h over sequences or windows of them (exec/attention/window.h), or
// exec/attention/context_attention.h over a context group.
#pragma once

#include "exec/layers/blocks.h"

namespace polyphony::exec {

torch::Tensor self_attention(const Frame& frame, const Layer& layer, const torch::Tensor& x);

}  // namespace polyphony::exec
