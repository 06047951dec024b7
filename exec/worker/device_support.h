// Describes, in words, which devices this build supports and which device a rank uses: for
// --version, the first lines of a run on GPUs, and the run's summary.
#pragma once

#include <string>

#include "exec/torch_pch.h"
#include "shared/scenario/scenario.h"

namespace polyphony::exec {

struct DeviceSupport {
  std::string gpu_libraries;  // "CUDA 13.0, NCCL 2.28.9"; empty: CPU only
  std::string
      kernels;  // compute capabilities of our compiled kernels, "8.0, 9.0, 10.0"; empty: none
};
DeviceSupport support_of_build();
std::string in_words(const DeviceSupport& support);

// The device on which a rank computes.
struct DeviceFound {
  std::string gpu;          // name of the GPU; empty: CPU
  int capability = 0;       // major number of the GPU's compute capability
  int gpus_of_node = 0;     // GPUs that the node's driver lists
  bool cpu_asked = false;   // --device requested the CPU
  std::string attention{};  // attention_in_words()
};
DeviceFound found(torch::Device device, const std::string& wish);
// Returns "cpu", or the GPU's name, which of our kernels it runs, and its attention kernels.
std::string in_words(const DeviceFound& found, const DeviceSupport& support);
// Throws InputError if the scenario trains with FP8 GEMMs, and the GPU or this build has none.
void require_fp8(const DeviceFound& found, const DeviceSupport& support, const Scenario& scenario);
// Returns what hardware this build does not use, and how to change that; empty if there is none.
std::string advice(const DeviceFound& found, const DeviceSupport& support);

}  // namespace polyphony::exec
