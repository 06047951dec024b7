// cuDNN's attention kernels, called through LibTorch 2.11 (at::_cudnn_attention_forward and
// _backward), for calls whose rectangles all have one shape: b rectangles of n queries and m keys
// are a batch [b, heads, rows, width], without a copy. Keys and values have their own, fewer heads.
//
// Why a batch and not packed lengths: with packed lengths LibTorch 2.11 builds cuDNN's plan anew at
// every call, 42 ms of the host; it looks for the plan in its cache but never stores it there
// (pytorch#191576, which repairs it). Plans of batches are stored, by the sizes and strides of
// queries, keys and values, for each thread (ATen/native/cudnn/MHA.cpp).
//
// What these calls therefore keep to:
//   layouts     LibTorch stores no strides of out, its gradient and the log-sum-exps, although the
//               plan has them; here they follow from the sizes alone. Addresses and strides are
//               multiples of 16 bytes
//   plans       only the first kMostCudnnPlans shapes of a process get one
//   diagonal    it begins at the first query and the first key, so causal rectangles are squares
//   log-sum-exp natural, fp32, [b, heads, n, 1]; usable to join calls, as PyTorch's own context
//               parallelism does (torch/distributed/tensor/experimental), because the backward pass
//               reads out and log-sum-exps as flash attention's does
//   order       LibTorch does not ask cuDNN for its deterministic backward pass (sdp_utils.cpp)
#pragma once

#include "exec/attention_calls/attention_kernel.h"

namespace polyphony::exec {

// A plan takes the host 0.1 to 0.8 s, forward and backward (pytorch#191576; sglang#4650), so that
// a run spends at most some seconds on plans, in its first steps. Lengths that vary from step to
// step would need a new plan each time.
inline constexpr std::size_t kMostCudnnPlans = 16;

// Returns whether the process has a plan for a call of these tensors, or makes one. Once true for
// some sizes and strides, it stays true.
bool has_cudnn_plan(const PackedHeads& heads, const PackedCall& call);
// For tests: forgets the shapes so far.
void forget_cudnn_plans();

// As attend_call() and attend_call_backward().
PackedOut cudnn_attention(const PackedHeads& heads, const PackedCall& call);
PackedHeads cudnn_attention_backward(const torch::Tensor& dy, const PackedHeads& heads,
                                     const PackedOut& attended, const PackedCall& call);

}  // namespace polyphony::exec
