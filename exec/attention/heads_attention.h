// Attention of heads, and its backward, without a graph: what stands between making heads of
// rows and rows of heads (exec/attention/row_attention.h), over the calls that their mask takes.
//   q [N, g, T, W], k [N, 1, G, W], v [N, 1, G, Dv], Dv ≤ W -> out [N, g, T, Dv], sums [N, g, T]
//   (log-sum-exp of each query's scores, fp32 at least); scores are divided by √W
//   a query in several calls: sums = ln Σ e^sumsᵢ, out = Σ outᵢ e^(sumsᵢ − sums), in sums' format. Of a
//   query in none out is 0 and sums −∞, so that other keys' results may be joined likewise.
//   On CPUs a call is LibTorch's kernel of flash attention; on devices: exec/attention/attention_kernel.h.
//   backward: of every call with the final out and sums, whatever other keys these are made of
//   sinks s [N, g, 1]: they change what is made without them:  sums' = ln(eˢᵘᵐˢ + eˢ),
//   out' = out·e^(sums − sums'). The backward of the scores is then the plain one of out' and sums',
//   and ds = −Σ e^(s − sums') (dy·out').
// Source: own derivation from flash attention's backward, Dao et al., arXiv 2205.14135, algorithm 4.
#pragma once

#include <vector>

#include "exec/attention/attention.h"
#include "exec/attention/packed_calls.h"

namespace polyphony::exec {

struct Attended {
  torch::Tensor out, sums;
};
Attended attend(const HeadTensors& heads, const AttentionCalls& calls);
Attended attend(const HeadTensors& heads, const std::vector<AttentionCall>& calls);
Attended attend(const HeadTensors& heads, const std::vector<PackedCall>& calls);
// Into `all`, of the same queries, in place: what they saw of other keys. `all.out` is of sums' format.
void join(const Attended& all, const Attended& more);
// Gradients of q, k and v; k's and v's summed over the group.
HeadTensors attend_backward(const torch::Tensor& dy, const HeadTensors& heads,
                            const Attended& attended, const AttentionCalls& calls);
HeadTensors attend_backward(const torch::Tensor& dy, const HeadTensors& heads,
                            const Attended& attended, const std::vector<AttentionCall>& calls);
HeadTensors attend_backward(const torch::Tensor& dy, const HeadTensors& heads,
                            const Attended& attended, const std::vector<PackedCall>& calls);

void add_sinks(Attended& attended, const torch::Tensor& sinks);
torch::Tensor sink_gradient(const torch::Tensor& dy, const Attended& attended,
                            const torch::Tensor& sinks);  // [N, g, T], to be summed over T

}  // namespace polyphony::exec
