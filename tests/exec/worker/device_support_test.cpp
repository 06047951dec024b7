#include "exec/worker/device_support.h"

#include <doctest/doctest.h>

#include "exec/device/device.h"
#include "exec/fused/forms.h"

namespace polyphony::exec {

TEST_SUITE("devices") {
  const DeviceSupport of_cpus{"", ""}, of_gpus{"CUDA 13.0, NCCL 2.28.9", ""},
      with_kernels{"CUDA 13.0, NCCL 2.28.9", "8.0, 9.0"};

  TEST_CASE("a build describes the devices that it supports") {
    CHECK(in_words(of_cpus) == "CPU only: no CUDA, no NCCL, no fused kernels");
    CHECK(in_words(of_gpus) == "CUDA 13.0, NCCL 2.28.9, no fused kernels");
    CHECK(in_words(with_kernels) ==
          "CUDA 13.0, NCCL 2.28.9, fused kernels for compute capability 8.0, 9.0 and later");
    // This one, as it was made.
    const DeviceSupport own = support_of_build();
    CHECK(own.kernels.empty() == !kernels::are_built());
#if defined(POLYPHONY_NCCL)
    CHECK(own.gpu_libraries.find("CUDA 1") == 0);
    CHECK(own.gpu_libraries.find(", NCCL 2.") != std::string::npos);
#else
    CHECK(own.gpu_libraries == "");
    CHECK(own.kernels == "");
#endif
  }

  TEST_CASE("a run describes its device, and what hardware is unused and why") {
    const DeviceFound cpu{}, gpu{"NVIDIA H100 (compute capability 9.0)", 9, 8},
        old{"Tesla T4 (compute capability 7.5)", 7, 1}, beside_gpus{"", 0, 8},
        cpu_asked{"", 0, 8, true};
    CHECK(in_words(cpu, with_kernels) == "cpu");
    CHECK(in_words(gpu, with_kernels) == "NVIDIA H100 (compute capability 9.0), fused kernels");
    CHECK(in_words(gpu, of_gpus) == "NVIDIA H100 (compute capability 9.0), no fused kernels");
    CHECK(in_words(old, with_kernels) == "Tesla T4 (compute capability 7.5), no fused kernels");
    DeviceFound told = gpu;
    told.attention = "flash attention";
    CHECK(in_words(told, with_kernels) ==
          "NVIDIA H100 (compute capability 9.0), fused kernels, flash attention");

    CHECK(advice(cpu, of_cpus) == "");
    CHECK(advice(cpu_asked, of_cpus) == "");
    CHECK(advice(gpu, with_kernels) == "");
    CHECK(advice(gpu, of_gpus).find("no fused kernels") != std::string::npos);
    CHECK(advice(gpu, of_gpus).find("put an nvcc of the same CUDA in PATH") != std::string::npos);
    CHECK(advice(old, with_kernels).find("compute capability 8.0") != std::string::npos);
    CHECK(advice(beside_gpus, of_cpus) ==
          "this machine has GPUs (8), but this build is for CPUs only: run POLYPHONY_CUDA=on "
          "scripts/setup, then configure and build again");
    CHECK(advice(beside_gpus, with_kernels).find("CUDA_VISIBLE_DEVICES") != std::string::npos);
  }

  TEST_CASE("FP8 GEMMs need a GPU that has them, and a CPU computes their numbers") {
    Scenario scenario;
    scenario.file = "a.json";
    const DeviceFound cpu{}, h100{"H100", 9, 8}, a100{"A100", 8, 8}, rtx{"RTX", 12, 1};
    require_fp8(a100, of_gpus, scenario);
    scenario.training.fp8 = Fp8Scaling::tensorwise;
    require_fp8(cpu, of_cpus, scenario);
    require_fp8(h100, with_kernels, scenario);
    require_fp8(rtx, with_kernels, scenario);
    const auto refused = [&](const DeviceFound& found, const DeviceSupport& support) {
      try {
        require_fp8(found, support, scenario);
      } catch (const InputError& error) {
        return error.what_is_wrong;
      }
      return std::string();
    };
    CHECK(refused(a100, with_kernels) == "A100 has compute capability 8.x; FP8 GEMMs need 9.0");
    CHECK(refused(h100, of_gpus) == "needs kernels that this build does not have");
    scenario.training.fp8 = Fp8Scaling::rowwise;
    CHECK(refused(h100, with_kernels).empty());
    CHECK(refused(rtx, with_kernels).find("scales by row") != std::string::npos);
  }

  TEST_CASE("a rank on a CPU is described as such, whatever the node has") {
    const DeviceFound here = found(torch::kCPU, "cpu");
    CHECK(here.gpu == "");
    CHECK(here.capability == 0);
    CHECK(here.cpu_asked);
    CHECK(here.attention == "");
    CHECK(here.gpus_of_node == gpus_of_node());
    CHECK_FALSE(found(torch::kCPU, "").cpu_asked);
  }
}

}  // namespace polyphony::exec
