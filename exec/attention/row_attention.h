// Attention as an autograd function that saves only rows for its backward pass: its input qkv, its
// output (the same tensor that the next layer saves), and the log-sum-exp of each query. The
// backward pass recomputes padding, rotation and the order of heads, at the cost of a copy of qkv;
// LibTorch's own graph would also save the rotated and padded q, k, v and output.
//   Saved elements, for T rows and A query heads: T·(A + 2·K)·D and T·A·D, and T·A in fp32 (fp64
//   for fp64).
//   With a HeadMaker: the rows from which it makes the heads, in place of qkv.
// Source: the activations that flash attention saves, Dao et al., arXiv 2205.14135, algorithm 4.
#pragma once

#include "exec/attention/attention.h"

namespace polyphony::exec {

// Does the same as attention() of exec/attention/attention.h; the plan must have at least one
// bucket.
torch::Tensor row_attention(const torch::Tensor& qkv, const SequencePlan& plan,
                            const HeadShape& heads, const torch::Tensor& sinks);
torch::Tensor row_attention(const std::vector<torch::Tensor>& rows, const SequencePlan& plan,
                            const std::shared_ptr<const HeadMaker>& maker);

}  // namespace polyphony::exec
