#include "exec/cuda/forms.h"

#include <algorithm>
#include <atomic>

#include "exec/cuda/run.h"
#include "shared/error.h"
#if defined(POLYPHONY_KERNELS)
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>
#endif

namespace polyphony::exec::kernels {

namespace {

std::atomic<Forms> chosen{Forms::by_device};

#if defined(POLYPHONY_KERNELS)
constexpr bool kBuilt = true;
int attribute(torch::Device device, cudaDeviceAttr what) {  // no wait, and cheap: of the host's
  int value = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&value, what, device.index()));
  return value;
}
bool has_kernels(torch::Device device) {
  constexpr int kOldest = 8;  // of scripts/cmake/kernels.cmake
  return device.is_cuda() && attribute(device, cudaDevAttrComputeCapabilityMajor) >= kOldest;
}
int processors(torch::Device device) { return attribute(device, cudaDevAttrMultiProcessorCount); }
#else
constexpr bool kBuilt = false;
bool has_kernels(torch::Device) { return false; }
#endif

}  // namespace

void use_forms(Forms forms) { chosen = forms; }

bool are_built() { return kBuilt; }

bool wanted(const torch::Tensor& x) {
  const Forms forms = chosen;
  if (forms == Forms::aten) return false;
  const auto format = x.scalar_type();
  if (format != torch::kBFloat16 && format != torch::kFloat32 && format != torch::kFloat64)
    return false;
  return (forms == Forms::fused && x.is_cpu()) || has_kernels(x.device());
}

int row_blocks(std::int64_t rows, torch::Device device) {
  // On CPUs more than one, as tests want it. On GPUs as many as run at once with 512 lanes each.
  constexpr std::int64_t kOfCpu = 3, kOfProcessor = 4;
  std::int64_t most = kOfCpu;
#if defined(POLYPHONY_KERNELS)
  if (device.is_cuda()) most = kOfProcessor * processors(device);
#else
  static_cast<void>(device);
  static_cast<void>(kOfProcessor);
#endif
  return static_cast<int>(std::min(rows, most));
}

#if defined(POLYPHONY_KERNELS)
OnDevice::OnDevice(torch::Device device)
    : guard_(device), place_{current_stream(device).native_handle(), processors(device)} {}
#endif

void check_launch(const char* error) {
  POLYPHONY_CHECK(error == nullptr, "a kernel was not launched: " << error);
}

}  // namespace polyphony::exec::kernels
