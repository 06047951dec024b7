// Which device a rank computes on, and the transport that goes with it.
#pragma once

#include <memory>
#include <string>

#include "exec/system/launch_env.h"
#include "exec/transport/communicator.h"
#include "shared/units.h"

namespace polyphony::exec {

// `wish`: "cuda", "cpu", or "": cuda when this build and this machine can. The GPU is the one
// numbered LOCAL_RANK, counting round when there are fewer. InputError when a wish for cuda cannot
// be met.
torch::Device choose_device(const std::string& wish, const LaunchEnv& launch);

// CUDA's and NCCL's versions that this build has; empty: neither. A GPU's name with its compute capability. How many GPUs
// the node's driver lists, in any build.
std::string gpu_libraries();
std::string gpu_name(torch::Device device);
int gpus_of_node();

// What a rank on `device` can have: its part of the machine's or of the GPU's memory.
Bytes memory_per_rank(torch::Device device, const LaunchEnv& launch);

// Collective over all ranks of the launch: threads' transport for a world of one, else Gloo, with
// NCCL when every rank has a GPU of its own (`in_order`: its sums in group order). Errors: as connect_gloo.
std::unique_ptr<Transport> connect(const LaunchEnv& launch, torch::Device device,
                                   bool in_order = false);

}  // namespace polyphony::exec
