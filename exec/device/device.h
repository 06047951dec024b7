// Chooses the device on which a rank computes, and connects the transport for that device.
#pragma once

#include <memory>
#include <string>

#include "exec/system/launch_env.h"
#include "exec/transport/communicator.h"
#include "shared/units.h"

namespace polyphony::exec {

// Returns the device for `wish`: "cuda", "cpu", or "" for CUDA if this build and this machine
// support it. The GPU's number is LOCAL_RANK modulo the number of GPUs. Throws InputError if CUDA
// is requested but not available.
torch::Device choose_device(const std::string& wish, const LaunchEnv& launch);

// Returns the versions of CUDA and NCCL in this build; empty if it was built without them.
std::string gpu_libraries();
// Returns the GPU's name and compute capability.
std::string gpu_name(torch::Device device);
// Returns the number of GPUs that the node's driver lists; works in any build.
int gpus_of_node();

// Returns the number of multiprocessors; 0 if the device is no GPU.
int processors_of(torch::Device device);

// Returns the memory available to a rank on `device`: its share of the machine's or the GPU's
// memory.
Bytes memory_per_rank(torch::Device device, const LaunchEnv& launch);

// Returns the transport for all ranks of the launch: in-process for a world of one rank, else Gloo,
// with NCCL for device tensors if every rank has a GPU of its own. Collective. `in_order`: NCCL
// sums in group order. Throws the same errors as connect_gloo().
std::unique_ptr<Transport> connect(const LaunchEnv& launch, torch::Device device,
                                   bool in_order = false);

}  // namespace polyphony::exec
