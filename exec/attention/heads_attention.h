// Attention of heads on CPUs, and its backward, without a graph: what stands between making heads of
// rows and rows of heads (exec/attention/row_attention.h).
//   q [N, g, L, W], k [N, 1, L, W], v [N, 1, L, Dv], Dv ≤ W -> out [N, g, L, Dv], sums [N, g, L]
//   (log-sum-exp of each query's scores, fp32 at least); scores are divided by √W
//   window w: rows are taken w at a time, with the keys that any of them sees: L·2w pairs, not L²
//   sinks s [N, g, 1]: they change what is made without them:  sums' = ln(eˢᵘᵐˢ + eˢ),
//   out' = out·e^(sums − sums'). The backward of the scores is then the plain one of out' and sums',
//   and ds = −Σ e^(s − sums') (dy·out').
// Source: own derivation from flash attention's backward, Dao et al., arXiv 2205.14135, algorithm 4.
#pragma once

#include <optional>

#include "exec/attention/attention.h"

namespace polyphony::exec {

struct Attended {
  torch::Tensor out, sums;
};
Attended attend(const HeadTensors& heads, bool causal, std::int64_t window);
// Gradients of q, k and v; k's and v's summed over the group.
HeadTensors attend_backward(const torch::Tensor& dy, const HeadTensors& heads,
                            const Attended& attended, bool causal, std::int64_t window);

// Scores of rows that see at most `window` keys that end with their own: row i stands at key
// i + ahead. 0, or −∞.
torch::Tensor window_mask(std::int64_t rows, std::int64_t keys, std::int64_t ahead,
                          std::int64_t window, const torch::TensorOptions& format);

void add_sinks(Attended& attended, const torch::Tensor& sinks);
torch::Tensor sink_gradient(const torch::Tensor& dy, const Attended& attended,
                            const torch::Tensor& sinks);  // [N, g, L], to be summed over L

}  // namespace polyphony::exec
