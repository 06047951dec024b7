// Runs LibTorch's attention kernels on devices, for the rectangles of one call
// (exec/attention_calls/packed_calls.h), and chooses one for each call
// (exec/attention_calls/kernel_choice.h).
//   queries [n, H, W], keys [m, K, W], values [m, K, Dv], Dv ≤ W
//   query head h reads key head h ÷ (H ÷ K); scores are divided by √W
//   out [n, H, Dv] in the queries' format; sums [H, n]: log-sum-exps, fp32 (fp64 for fp64)
// The backward pass takes the final out and sums of these queries, which may include the
// contributions of other keys.
#pragma once

#include "exec/attention_calls/packed_calls.h"

namespace polyphony::exec {

struct PackedHeads {
  torch::Tensor queries, keys, values;
};
struct PackedOut {
  torch::Tensor out, sums;
};
PackedOut attend_call(const PackedHeads& heads, const PackedCall& call);
PackedHeads attend_call_backward(const torch::Tensor& dy, const PackedHeads& heads,
                                 const PackedOut& attended, const PackedCall& call);

}  // namespace polyphony::exec
