// Attention over heads and its backward pass, without an autograd graph: the step between making
// heads from rows and rows from heads (exec/attention/row_attention.h), as the calls that the mask
// needs.
//   q [N, g, T, W], k [N, 1, G, W], v [N, 1, G, Dv], Dv ≤ W -> out [N, g, T, Dv], sums [N, g, T]
//   (log-sum-exp of each query's scores, fp32 or wider); scores are divided by √W
//
// The results of a query that is in several calls are combined, in sums' format:
//   sums = ln Σ e^sumsᵢ,  out = Σ outᵢ e^(sumsᵢ − sums)
// For a query in no call, out is 0 and sums is −∞, so that results for other keys can be joined the
// same way.
//
// A call runs LibTorch's flash attention kernel on CPUs, and a kernel of
// exec/attention_calls/attention_kernel.h on devices. The backward pass of every call takes the
// final out and sums, which may include the contributions of other keys.
//
// Sinks s [N, g, 1] are applied afterwards:
//   sums' = ln(eˢᵘᵐˢ + eˢ),  out' = out·e^(sums − sums'),  ds = −Σ e^(s − sums') (dy·out')
// The backward pass of the scores is then the usual one with out' and sums'.
// Source: own derivation from flash attention's backward, Dao et al., arXiv 2205.14135,
// algorithm 4.
#pragma once

#include <vector>

#include "exec/attention_calls/head_tensors.h"
#include "exec/attention_calls/packed_calls.h"

namespace polyphony::exec {

struct Attended {
  torch::Tensor out, sums;
};
Attended attend(const HeadTensors& heads, const AttentionCalls& calls);
Attended attend(const HeadTensors& heads, const std::vector<AttentionCall>& calls);
Attended attend(const HeadTensors& heads, const std::vector<PackedCall>& calls);
// Combines `more`, the results of the same queries for other keys, into `all`, in place. `all.out`
// must have sums' format.
void join(const Attended& all, const Attended& more);
// Returns the gradients of q, k and v; those of k and v are summed over the g query heads.
HeadTensors attend_backward(const torch::Tensor& dy, const HeadTensors& heads,
                            const Attended& attended, const AttentionCalls& calls);
HeadTensors attend_backward(const torch::Tensor& dy, const HeadTensors& heads,
                            const Attended& attended, const std::vector<AttentionCall>& calls);
HeadTensors attend_backward(const torch::Tensor& dy, const HeadTensors& heads,
                            const Attended& attended, const std::vector<PackedCall>& calls);

void add_sinks(Attended& attended, const torch::Tensor& sinks);
torch::Tensor sink_gradient(const torch::Tensor& dy, const Attended& attended,
                            const torch::Tensor& sinks);  // [N, g, T]; the caller sums over T

}  // namespace polyphony::exec
