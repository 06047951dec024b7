// Chooses and runs LibTorch's attention kernels on devices, for the rectangles of one call
// (exec/attention_calls/packed_calls.h).
//   queries [n, H, W], keys [m, K, W], values [m, K, Dv], Dv ≤ W
//   query head h reads key head h ÷ (H ÷ K); scores are divided by √W
//   out [n, H, Dv] in the queries' format; sums [H, n]: log-sum-exps, fp32 (fp64 for fp64)
// The backward pass takes the final out and sums of these queries, which may include the
// contributions of other keys.
//
// The three kernels and what they support in LibTorch 2.11 (`left` and `right` are the bounds of
// exec/attention_calls/packed_calls.h):
//   flash      bf16 and fp16, heads at most 256 wide, padded to a multiple of 8; values are padded
//              to the keys' width. It treats a bound of at least the longest keys as absent, and,
//              next to a left bound, an absent right bound as the longest keys. It is not used
//              where that would change which keys a query attends to.
//   efficient  fp32, and wider heads. Keys are copied for each query head. The right bound must be
//              the diagonal or absent. A left bound needs the right bound at the diagonal, and as
//              many queries as keys in every rectangle, because the kernel's backward pass ignores
//              the offset of other diagonals.
//   plain      everything else, above all fp64: GEMMs and a softmax for each rectangle, with the
//              scores in memory
//
// GPUs of compute capability below 8.0 have no flash kernel and no efficient kernel for bf16: there
// fp16 uses `efficient`, and bf16 uses `plain`.
// Sources: ATen/native/transformers/cuda of LibTorch 2.11 (for GPUs: sdp_utils.cpp); Dao et al.,
// arXiv 2205.14135, 2307.08691.
#pragma once

#include <optional>

#include "exec/attention_calls/packed_calls.h"

namespace polyphony::exec {

enum class AttentionKernel : std::uint8_t { flash, efficient, plain };

struct KernelNeeds {
  torch::Dtype dtype = torch::kBFloat16;
  std::int64_t width = 64;                             // W
  std::int64_t longest_queries = 1, longest_keys = 1;  // maxima over the rectangles
  std::int64_t left = -1, right = -1;
  bool square = true;
  int capability = 8;  // kernels::capability(); 0: not a GPU, and all kernels are available
};
// Returns the first kernel of the list above that supports the call.
AttentionKernel kernel_for(const KernelNeeds& needs);

// For tests; applies to the whole process: makes kernel_for() ignore each kernel's limits on format
// and head width, and choose `kernel` wherever its bounds allow it. nullopt restores the default.
void prefer_kernel(std::optional<AttentionKernel> kernel);

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
