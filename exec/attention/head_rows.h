// Between rows and heads, without a graph: the steps around attention over one bucket
// (exec/attention/attention.h), and what their backwards do.
#pragma once

#include "exec/attention/attention.h"

namespace polyphony::exec {

// Valid rows to [count·L], zeros where padding (padding reads one appended zero row), and back.
torch::Tensor pad_rows(const torch::Tensor& x, const SequencePlan::Bucket& bucket);
torch::Tensor unpad_rows(const torch::Tensor& x, const SequencePlan::Bucket& bucket);

// Turned by the bucket's angles: [count, …, …, L, D]; with gradients.
torch::Tensor rotate_heads(const torch::Tensor& x, const SequencePlan::Bucket& bucket);

// [rows, K·(g+2)·D] -> q [count·K, g, L, D], k and v [count·K, 1, L, D], rotated; and its
// transpose.
HeadTensors split_heads(const torch::Tensor& qkv, const SequencePlan::Bucket& bucket,
                        const HeadShape& heads);
torch::Tensor join_gradients(const HeadTensors& gradients, const SequencePlan::Bucket& bucket,
                             const HeadShape& heads);
// [count·K, g, L, D] -> [rows, K·g·D], and its transpose.
torch::Tensor join_outputs(const torch::Tensor& out, const SequencePlan::Bucket& bucket,
                           const HeadShape& heads);
torch::Tensor split_outputs(const torch::Tensor& rows, const SequencePlan::Bucket& bucket,
                            const HeadShape& heads);

}  // namespace polyphony::exec
