// Conversions between rows and heads without an autograd graph: the steps before and after the
// attention of one bucket (exec/attention/attention.h), and their backward passes.
#pragma once

#include "exec/attention/attention.h"

namespace polyphony::exec {

// Copies the valid rows to their places in [count·L], with zeros as padding; and back.
torch::Tensor pad_rows(const torch::Tensor& x, const SequencePlan::Bucket& bucket);
torch::Tensor unpad_rows(const torch::Tensor& x, const SequencePlan::Bucket& bucket);

// Rotates x [count, …, …, L, D] by the bucket's angles; differentiable.
torch::Tensor rotate_heads(const torch::Tensor& x, const SequencePlan::Bucket& bucket);

// Turns qkv rows [rows, K·(g+2)·D] into rotated q [count·K, g, L, D], k and v [count·K, 1, L, D];
// join_gradients() is its transpose.
HeadTensors split_heads(const torch::Tensor& qkv, const SequencePlan::Bucket& bucket,
                        const HeadShape& heads);
torch::Tensor join_gradients(const HeadTensors& gradients, const SequencePlan::Bucket& bucket,
                             const HeadShape& heads);
// Turns outputs [count·K, g, L, D] into rows [rows, K·g·D]; split_outputs() is its transpose.
torch::Tensor join_outputs(const torch::Tensor& out, const SequencePlan::Bucket& bucket,
                           const HeadShape& heads);
torch::Tensor split_outputs(const torch::Tensor& rows, const SequencePlan::Bucket& bucket,
                            const HeadShape& heads);

// Repeats sinks [K·g] for each of `count` sequences: [count·K, g, 1].
torch::Tensor sinks_of(const torch::Tensor& sinks, std::int64_t count, const HeadShape& heads);
// Sums [count·K, g, L] over sequences and rows: [K·g].
torch::Tensor sum_by_head(const torch::Tensor& of_queries, std::int64_t count,
                          const HeadShape& heads);

}  // namespace polyphony::exec
