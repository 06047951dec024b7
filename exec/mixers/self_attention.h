// The attention part of a block, between its norm and its residual sum: x [rows, H] -> [rows, H].
//   qkv = x Wqkvᵀ + b, cut by key/value heads, heads normalized (exec/attention/qk_norm.h), then
//   out(attention(qkv))
//   If there are more tensor-parallel ranks than key/value heads, each rank has a copy of one of
//   these and some of its query heads (Cut::heads, shared/chunk/parameters.h).
// Attention itself: exec/attention/attention.h over sequences or windows of them
// (exec/attention/window.h), or exec/context_parallel/context_attention.h over a context-parallel
// group.
#pragma once

#include "exec/frame/frame.h"

namespace polyphony::exec {

torch::Tensor self_attention(const Frame& frame, const Layer& layer, const torch::Tensor& x);

}  // namespace polyphony::exec
