#include "exec/fused/forms.h"

#include <c10/util/Type.h>

#include <algorithm>
#include <atomic>

#include "exec/fused/run.h"
#include "shared/error.h"
#if defined(POLYPHONY_NCCL)
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>
#endif

namespace polyphony::exec::kernels {

namespace {

std::atomic<Forms> chosen{Forms::by_device};
std::atomic<QueueLoops> elsewhere{nullptr};

#if defined(POLYPHONY_KERNELS)
constexpr const char* kBuiltFor = POLYPHONY_KERNELS;
#else
constexpr const char* kBuiltFor = "";
#endif

enum class Attribute { capability, processors };

#if defined(POLYPHONY_NCCL)
int attribute(torch::Device device, Attribute what) {  // cheap: the host knows it, no waiting
  int value = 0;
  C10_CUDA_CHECK(cudaDeviceGetAttribute(&value,
                                        what == Attribute::capability
                                            ? cudaDevAttrComputeCapabilityMajor
                                            : cudaDevAttrMultiProcessorCount,
                                        device.index()));
  return value;
}
#else
int attribute(torch::Device device, Attribute) {
  POLYPHONY_CHECK(false, "a build without GPU support does not know " << device);
}
#endif

}  // namespace

void use_forms(Forms forms) { chosen = forms; }

Forms forms() { return chosen; }

void queue_loops_by(QueueLoops queue) { elsewhere = queue; }

void queue_loops(torch::Device device, std::function<void()> loops, const std::type_info& body) {
  const QueueLoops queue = elsewhere;
  POLYPHONY_CHECK(queue != nullptr, "no kernels on " << device);
  queue(device, std::move(loops), c10::demangle(body.name()));
}

int capability(torch::Device device) {
  return device.is_cuda() ? attribute(device, Attribute::capability) : 0;
}

bool are_built() { return *kBuiltFor != '\0'; }
const char* built_for() { return kBuiltFor; }

bool wanted(const torch::Tensor& x) {
  const Forms form = forms();
  if (form == Forms::aten) return false;
  const auto format = x.scalar_type();
  if (format != torch::kBFloat16 && format != torch::kFloat32 && format != torch::kFloat64)
    return false;
  const bool has_loops = x.is_cpu() || (elsewhere.load() != nullptr && !x.is_cuda());
  return (form == Forms::fused && has_loops) || (are_built() && capability(x.device()) >= kOldest);
}

int row_blocks(std::int64_t rows, torch::Device device, int lanes) {
  constexpr std::int64_t kOfCpu = 3;  // more than one, for tests
  // Lanes and blocks of a multiprocessor, on compute capability 8.0 to 10.0 (CUDA C++ Programming
  // Guide, technical specifications).
  constexpr std::int64_t kLanesOfProcessor = 2048, kBlocksOfProcessor = 32;
  const std::int64_t most = device.is_cuda()
                                ? std::min(kLanesOfProcessor / lanes, kBlocksOfProcessor) *
                                      attribute(device, Attribute::processors)
                                : kOfCpu;
  return static_cast<int>(std::min(rows, most));
}

#if defined(POLYPHONY_KERNELS)
OnDevice::OnDevice(torch::Device device)
    : guard_(device),
      place_{current_stream(device).native_handle(), attribute(device, Attribute::processors)} {}
#endif

void check_launch(const char* error) {
  POLYPHONY_CHECK(error == nullptr, "launching a kernel failed: " << error);
}

}  // namespace polyphony::exec::kernels
