// Context-parallel attention whose keys are gathered one group of heads at a time: while this rank
// computes the attention of one group, the keys and values of the next group are gathered
// (exec/autograd/beside.h).
//
// The backward pass gathers them again, and meanwhile also sums and scatters the gradients of the
// group before. So the keys of two groups are in memory at once, and only the rank's own rows are
// saved between the passes.
//   queries [K, g, T, D]; own keys and values [K/h·T, 2·h·D], group after group (h heads per group)
// Source: Cornstarch (ICML 2026, §4.3); gathers ahead of the heads that need them.
#pragma once

#include "exec/attention_calls/heads_attention.h"
#include "exec/context_parallel/context_attention.h"

namespace polyphony::exec {

Attended attend_groups(const ContextPlan& plan, const torch::Tensor& queries,
                       const torch::Tensor& keys, const HeadShape& heads);
RoundGradients attend_groups_backward(const ContextPlan& plan, const torch::Tensor& dy,
                                      const torch::Tensor& queries, const torch::Tensor& keys,
                                      const Attended& attended, const HeadShape& heads);

}  // namespace polyphony::exec
