// Attention that keeps rows for its backward, each once: qkv as it came, the output as it
// leaves (the next layer keeps the same tensor), and the log-sum-exp of each query. Padding,
// rotation and the order of heads are made again in the backward, which costs it a copy of qkv;
// LibTorch's own graph would keep the rotated and padded q, k, v and output besides.
//   Kept, of T rows: T·(A + 2·K)·D, T·A·D, and T·A of fp32 (fp64 for fp64).
//   With a context group: queries T·A·D and gathered keys and values G·2·K·D in place of qkv; own ones
//   where the others' come by.
//   Heads that a HeadMaker makes: the rows that it makes them of, in place of qkv.
// Source: what flash attention keeps, Dao et al., arXiv 2205.14135, algorithm 4.
#pragma once

#include "exec/attention/attention.h"

namespace polyphony::exec {

// As attention() of exec/attention/attention.h; at least one bucket.
torch::Tensor row_attention(const torch::Tensor& qkv, const SequencePlan& plan,
                            const HeadShape& heads, const torch::Tensor& sinks);
torch::Tensor row_attention(const std::vector<torch::Tensor>& rows, const SequencePlan& plan,
                            const std::shared_ptr<const HeadMaker>& maker);
// As context_attention() of exec/attention/context_attention.h; at least one row here.
torch::Tensor row_context_attention(const torch::Tensor& queries, const torch::Tensor& keys,
                                    std::shared_ptr<const ContextPlan> plan, const HeadShape& heads,
                                    const torch::Tensor& sinks);

}  // namespace polyphony::exec
