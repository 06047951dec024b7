// LibTorch's kernels of attention on devices, for the rectangles of one call (exec/attention/packed_calls.h).
//   queries [n, H, W], keys [m, K, W], values [m, K, Dv], Dv ≤ W; head h of H reads h ÷ (H ÷ K); scores are divided by √W
//   out [n, H, Dv] in the queries' format, sums [H, n]: log-sum-exps, fp32 (fp64 of fp64)
//   backward: of the final out and sums of these queries, whatever other keys they are made of
// What each asks for, as LibTorch 2.11 has it:
//   flash      bf16, fp16 of at most 256 wide; a multiple of 8 (wider than values: these are padded, too). A bound
//              that reaches as far as the longest keys counts as none, and none to the right means no further than
//              the longest keys beside one to the left: where that would show a query more or less, not this kernel.
//   efficient  fp32 and wider heads; each query head its own keys (copied); bound to the right at the diagonal or not
//              at all, to the left beside it in squares only (its backward forgets how far other diagonals are off)
//   plain      what neither takes, fp64 above all: matrix products and a softmax a rectangle, scores in memory
// GPUs before compute capability 8.0 have no flash kernel, and no efficient one of bf16: fp16 is efficient's there, bf16
// plain's.
// Sources: ATen/native/transformers/cuda of LibTorch 2.11 (of GPUs: sdp_utils.cpp); Dao et al., arXiv 2205.14135, 2307.08691.
#pragma once

#include <optional>

#include "exec/attention/packed_calls.h"

namespace polyphony::exec {

enum class AttentionKernel : std::uint8_t { flash, efficient, plain };

struct KernelNeeds {
  torch::Dtype dtype = torch::kBFloat16;
  std::int64_t width = 64;                             // W
  std::int64_t longest_queries = 1, longest_keys = 1;  // of a rectangle
  std::int64_t left = -1, right = -1;
  bool square = true;
  int capability = 8;  // kernels::capability(): 0 of devices that are no GPU, which lack none
};
AttentionKernel kernel_for(const KernelNeeds& needs);

// For tests, of the whole process: where kernel_for() would not take it for the format or the width of heads alone.
void prefer_kernel(std::optional<AttentionKernel> kernel);

// Of the whole process (`--deterministic`): gradients are summed in one order, as LibTorch's deterministic algorithms
// do, which costs flash attention another copy of the queries' gradients in fp32 for few heads. Nothing else here takes
// LibTorch's word for what is deterministic: some of its operators refuse to run then.
void keep_attention_order(bool keep);

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
