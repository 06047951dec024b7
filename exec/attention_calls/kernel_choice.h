// Chooses LibTorch's attention kernel for a call on a device
// (exec/attention_calls/attention_kernel.h).
//
// The four kernels and what they support in LibTorch 2.11 (`left` and `right` are the bounds of
// exec/attention_calls/packed_calls.h):
//   cudnn      bf16 and fp16, heads at most 128 wide, padded to a multiple of 8; compute capability
//              9.x and 10.x, cuDNN 9.15.1 or later, not in a fixed order of sums. All rectangles
//              have one shape, without bounds or, if they are squares, with the right bound at the
//              diagonal. Queries and keys are multiples of 128, at least 256
//              (exec/attention_calls/cudnn_attention.h)
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
//
// Why these limits of `cudnn`: it takes half of flash's time on an H100 for all measured shapes of
// 256 keys and more (scenarios/measured/h100_kernels.csv); wider heads are not measured. PyTorch
// prefers it on the same GPUs and from the same version on (sdp_utils.cpp). If the last tile of 128
// keys is half full, the backward pass up to cuDNN 9.30 gives NaN for queries whose scores are all
// below -88 (pytorch#196678, cudnn-frontend#628); single queries are wrong on compute capability
// 10.x (pytorch#193893).
// Sources: ATen/native/transformers/cuda of LibTorch 2.11 (for GPUs: sdp_utils.cpp); Dao et al.,
// arXiv 2205.14135, 2307.08691.
#pragma once

#include <optional>
#include <string>

#include "exec/torch_pch.h"

namespace polyphony::exec {

enum class AttentionKernel : std::uint8_t { cudnn, flash, efficient, plain };

// Versions as cuDNN numbers them: 9.15.1 is 91501.
inline constexpr long kOldestCudnn = 91501;
// Returns the version that is loaded; kOldestCudnn for devices that are no GPUs.
long cudnn_version(torch::Device device);

struct KernelNeeds {
  torch::Dtype dtype = torch::kBFloat16;
  std::int64_t width = 64;                             // W
  std::int64_t longest_queries = 1, longest_keys = 1;  // maxima over the rectangles
  std::int64_t left = -1, right = -1;
  bool square = true;
  bool alike = false;  // all rectangles have the same numbers of queries and of keys
  int capability = 8;  // kernels::capability(); 0: not a GPU, and all kernels are available
  long cudnn = kOldestCudnn;
  bool in_order = false;  // gradients are summed in a fixed order
};
// Returns the first kernel of the list above that supports the call.
AttentionKernel kernel_for(const KernelNeeds& needs);

// Applies to the whole process: whether `cudnn` may be chosen (`--attention`). Initially it may.
void allow_cudnn(bool allow);
// Returns in words which kernel calls in bf16 take on this device: "attention by cuDNN 9.19.0 where
// lengths are equal, else flash"; empty on CPUs.
std::string attention_in_words(torch::Device device);
// The same for a GPU of this compute capability (major number) and this version of cuDNN.
std::string attention_in_words(int capability, long cudnn);

// For tests; applies to the whole process: makes kernel_for() ignore each kernel's limits on
// format, head width and lengths, and choose `kernel` wherever its bounds allow it, and flash where
// those of `cudnn` do not. nullopt restores the default.
void prefer_kernel(std::optional<AttentionKernel> kernel);

}  // namespace polyphony::exec
