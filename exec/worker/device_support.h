// What this build can compute on and what it computes on, in words: for --version, for the first lines of a run on GPUs,
// and for its summary.
#pragma once

#include <string>

#include "exec/torch_pch.h"

namespace polyphony::exec {

struct DeviceSupport {
  std::string gpu_libraries;  // "CUDA 13.0, NCCL 2.28.9"; empty: CPUs alone
  std::string
      kernels;  // compute capabilities that ours are built for, "8.0, 9.0, 10.0"; empty: none
};
DeviceSupport support_of_build();
std::string in_words(const DeviceSupport& support);

// Where a rank computes.
struct DeviceFound {
  std::string gpu;         // its name; empty: on the CPU
  int capability = 0;      // the major number of the GPU's
  int gpus_of_node = 0;    // as its driver lists them
  bool cpu_asked = false;  // by --device
};
DeviceFound found(torch::Device device, const std::string& wish);
// "cpu", or the GPU and which kernels of ours it runs.
std::string in_words(const DeviceFound& found, const DeviceSupport& support);
// What the machine has and the build does not use, and how to come by it; empty: nothing.
std::string advice(const DeviceFound& found, const DeviceSupport& support);

}  // namespace polyphony::exec
