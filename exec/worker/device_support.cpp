#include "exec/worker/device_support.h"

#include "exec/attention_calls/kernel_choice.h"
#include "exec/device/device.h"
#include "exec/fused/forms.h"
#include "exec/fused/fp8.h"

namespace polyphony::exec {

namespace {

bool runs_kernels(const DeviceFound& found, const DeviceSupport& support) {
  return !support.kernels.empty() && found.capability >= kernels::kOldest;
}

}  // namespace

DeviceSupport support_of_build() { return {gpu_libraries(), kernels::built_for()}; }

std::string in_words(const DeviceSupport& support) {
  if (support.gpu_libraries.empty()) return "CPU only: no CUDA, no NCCL, no fused kernels";
  return support.gpu_libraries + ", " +
         (support.kernels.empty()
              ? "no fused kernels"
              : "fused kernels for compute capability " + support.kernels + " and later");
}

DeviceFound found(torch::Device device, const std::string& wish) {
  return {device.is_cpu() ? "" : gpu_name(device), kernels::capability(device), gpus_of_node(),
          wish == "cpu", attention_in_words(device)};
}

std::string in_words(const DeviceFound& found, const DeviceSupport& support) {
  if (found.gpu.empty()) return "cpu";
  return found.gpu + (runs_kernels(found, support) ? ", fused kernels" : ", no fused kernels") +
         (found.attention.empty() ? "" : ", " + found.attention);
}

void require_fp8(const DeviceFound& found, const DeviceSupport& support, const Scenario& scenario) {
  const Fp8Scaling scaling = scenario.training.fp8;
  if (scaling == Fp8Scaling::off || found.gpu.empty()) return;
  const auto refuse = [&](const std::string& why, const std::string& what) {
    throw InputError(scenario.file, "/training/fp8", why, what);
  };
  const std::string has = found.gpu + " has compute capability " + std::to_string(found.capability);
  if (found.capability < kernels::kFp8Capability)
    refuse(has + ".x; FP8 GEMMs need " + std::to_string(kernels::kFp8Capability) + ".0",
           "remove fp8 from the training, or run on an H100 or newer");
  if (scaling == Fp8Scaling::rowwise && found.capability > kernels::kFp8ByRowCapability)
    refuse(has + ".x, for which LibTorch has no FP8 GEMMs with scales by row", "use tensorwise");
  if (support.kernels.empty())
    refuse("needs kernels that this build does not have",
           "put an nvcc of the same CUDA in PATH, then configure and build again");
}

std::string advice(const DeviceFound& found, const DeviceSupport& support) {
  const std::string again = ", then configure and build again";
  if (found.gpu.empty()) {
    if (found.cpu_asked || found.gpus_of_node == 0) return "";
    const std::string gpus = "this machine has GPUs (" + std::to_string(found.gpus_of_node) + "), ";
    if (support.gpu_libraries.empty())
      return gpus + "but this build is for CPUs only: run POLYPHONY_CUDA=on scripts/setup" + again;
    return gpus + "but CUDA finds none: check nvidia-smi, the driver and CUDA_VISIBLE_DEVICES";
  }
  if (support.kernels.empty())
    return "this build has no fused kernels and runs several of LibTorch's instead of each: put an "
           "nvcc of the same CUDA in PATH or /usr/local/cuda" +
           again;
  if (!runs_kernels(found, support))
    return "fused kernels and flash attention need compute capability 8.0, which this GPU does not "
           "have: slower kernels are used";
  return "";
}

}  // namespace polyphony::exec
