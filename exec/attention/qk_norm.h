// Applies RMSNorm to every query head and every key head, before rotary positions; values are
// unchanged.
//   qkv [T, K·(g+2)·D] as in exec/attention/attention.h; query and key weights [D], the same for
//   all heads
// Under tensor parallelism a rank normalizes its own heads, so its weight gradients are partial
// sums (Partial::always).
// Sources: Qwen3, arXiv 2505.09388, section 2; Dehghani et al., arXiv 2302.05442, section 2.
#pragma once

#include "exec/attention/attention.h"
#include "exec/autograd/linear.h"

namespace polyphony::exec {

torch::Tensor qk_norm(const Pass& pass, const torch::Tensor& qkv, const HeadShape& heads,
                      LocalParameter* query, LocalParameter* key);

}  // namespace polyphony::exec
