// Attention over a context group whose keys are gathered some heads at a time: while this rank attends
// for a group of heads, the keys and values of the next are gathered (exec/autograd/beside.h); in the backward, which
// gathers them again, the gradients of the group before are then also summed and scattered. So two groups'
// keys are held at once, and own rows alone are kept.
//   queries [K, g, T, D]; own keys and values [K/h·T, 2·h·D], group after group
// Source: Cornstarch (ICML 2026, §4.3); gathers ahead of the heads that need them.
#pragma once

#include "exec/attention/context_attention.h"
#include "exec/attention/heads_attention.h"

namespace polyphony::exec {

Attended attend_groups(const ContextPlan& plan, const torch::Tensor& queries,
                       const torch::Tensor& keys, const HeadShape& heads);
RoundGradients attend_groups_backward(const ContextPlan& plan, const torch::Tensor& dy,
                                      const torch::Tensor& queries, const torch::Tensor& keys,
                                      const Attended& attended, const HeadShape& heads);

}  // namespace polyphony::exec
