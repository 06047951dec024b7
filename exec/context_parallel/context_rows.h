// Attention to the keys of a context group as an autograd function that saves only what its
// backward pass needs, as exec/attention/row_attention.h does for the rows of one rank.
//   Saved elements, for T rows and A query heads: queries T·A·D, gathered keys and values G·2·K·D
//   (only the rank's own if ContextPlan::comes_by()), the output T·A·D, and log-sum-exps T·A in
//   fp32 (fp64 for fp64).
#pragma once

#include <memory>

#include "exec/context_parallel/context_attention.h"

namespace polyphony::exec {

// Does the same as context_attention() of exec/context_parallel/context_attention.h; this rank must
// have at least one row.
torch::Tensor row_context_attention(const torch::Tensor& queries, const torch::Tensor& keys,
                                    std::shared_ptr<const ContextPlan> plan, const HeadShape& heads,
                                    const torch::Tensor& sinks);

}  // namespace polyphony::exec
