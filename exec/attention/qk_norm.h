// RMSNorm of every query head and every key head, before they are turned.
//   qkv [T, K·(g+2)·D] as in exec/attention/attention.h; q and k weights [D], the same for all heads;
//   v passes
// Under tensor parallelism a rank normalises its own heads, so that its weight gradients are parts
// of a sum (Partial::always). Source: Qwen3, arXiv 2505.09388, section 2; Dehghani et al., arXiv
// 2302.05442, section 2.
#pragma once

#include "exec/attention/attention.h"
#include "exec/autograd/linear.h"

namespace polyphony::exec {

torch::Tensor qk_norm(const Pass& pass, const torch::Tensor& qkv, const HeadShape& heads,
                      LocalParameter* query, LocalParameter* key);

}  // namespace polyphony::exec
