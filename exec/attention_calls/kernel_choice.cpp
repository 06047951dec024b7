#include "exec/attention_calls/kernel_choice.h"

#include <ATen/detail/CUDAHooksInterface.h>

#include <atomic>

#include "exec/autograd/in_order.h"
#include "exec/fused/forms.h"

namespace polyphony::exec {

namespace {

constexpr std::int64_t kFlashWidest = 256;
// Of cuDNN's kernels: the widest heads and the fewest keys that are measured, and rows of a tile.
constexpr std::int64_t kCudnnWidest = 128, kCudnnFewest = 256, kCudnnTile = 128;

std::atomic<int> preferred{-1};
std::atomic<bool> cudnn_allowed{true};

bool is_old(const KernelNeeds& needs) { return needs.capability > 0 && needs.capability < 8; }
bool is_half(const KernelNeeds& needs) {
  return needs.dtype == torch::kBFloat16 || needs.dtype == torch::kHalf;
}
bool has_cudnn(int capability, long version) {
  return (capability == 0 || capability == 9 || capability == 10) && version >= kOldestCudnn;
}
bool cudnn_takes(const KernelNeeds& needs) {
  return cudnn_allowed && is_half(needs) && needs.width <= kCudnnWidest &&
         has_cudnn(needs.capability, needs.cudnn) && needs.longest_keys >= kCudnnFewest &&
         needs.longest_keys % kCudnnTile == 0 && needs.longest_queries % kCudnnTile == 0;
}
bool cudnn_sees(const KernelNeeds& needs) {
  return needs.alike && !needs.in_order && needs.longest_queries > 1 && needs.longest_keys > 1 &&
         needs.left < 0 && (needs.right < 0 || (needs.right == 0 && needs.square));
}
bool flash_takes(const KernelNeeds& needs) {
  return is_half(needs) && needs.width <= kFlashWidest && !is_old(needs);
}
bool flash_sees(const KernelNeeds& needs) {
  if (needs.right >= 0) return needs.right == 0 || needs.right < needs.longest_keys;
  return needs.left < 0 || needs.longest_queries <= needs.longest_keys + 1;
}
bool efficient_takes(const KernelNeeds& needs) {
  return (needs.dtype == torch::kBFloat16 && !is_old(needs)) || needs.dtype == torch::kHalf ||
         needs.dtype == torch::kFloat32;
}
bool efficient_sees(const KernelNeeds& needs) {
  return needs.left < 0 ? needs.right <= 0 : needs.right == 0 && needs.square;
}

}  // namespace

long cudnn_version(torch::Device device) {
  if (!device.is_cuda()) return kOldestCudnn;
  const at::CUDAHooksInterface& cuda = at::detail::getCUDAHooks();
  return cuda.hasCuDNN() ? cuda.versionRuntimeCuDNN() : 0;
}

void prefer_kernel(std::optional<AttentionKernel> kernel) {
  preferred = kernel ? static_cast<int>(*kernel) : -1;
}

AttentionKernel kernel_for(const KernelNeeds& needs) {
  const int wanted = preferred;
  const auto may = [&](AttentionKernel kernel, bool takes) {
    return wanted < 0 ? takes
                      : wanted == static_cast<int>(kernel) ||
                            (kernel == AttentionKernel::flash &&
                             wanted == static_cast<int>(AttentionKernel::cudnn));
  };
  if (may(AttentionKernel::cudnn, cudnn_takes(needs)) && cudnn_sees(needs))
    return AttentionKernel::cudnn;
  if (may(AttentionKernel::flash, flash_takes(needs)) && flash_sees(needs))
    return AttentionKernel::flash;
  if (may(AttentionKernel::efficient, efficient_takes(needs)) && efficient_sees(needs))
    return AttentionKernel::efficient;
  return AttentionKernel::plain;
}

void allow_cudnn(bool allow) { cudnn_allowed = allow; }

std::string attention_in_words(int capability, long cudnn) {
  if (capability < 8) return "no flash attention";
  if (!cudnn_allowed || keeps_order() || !has_cudnn(capability, cudnn)) return "flash attention";
  const auto part = [&](long unit, long range) { return std::to_string(cudnn / unit % range); };
  return "attention by cuDNN " + part(10000, 100) + "." + part(100, 100) + "." + part(1, 100) +
         " where lengths are equal, else flash";
}

std::string attention_in_words(torch::Device device) {
  return device.is_cpu() ? ""
                         : attention_in_words(kernels::capability(device), cudnn_version(device));
}

}  // namespace polyphony::exec
