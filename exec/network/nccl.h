// Ranks with a GPU each: collectives of CUDA tensors over NCCL (exec/network/nccl_exchange.h); messages,
// and all CPU tensors, over the Gloo transport beneath (exec/transport/staged.h: NCCL ignores tags, so it
// cannot keep the contract of exec/transport/communicator.h for messages; pytorch issue 125079). Calls block
// the host until the GPU is done, as the contract says.
//   NCCL refuses two ranks on one GPU: when any rank shares its GPU or has none, everything goes
//   through host memory, and rank 0 says so on stderr.
//   In builds with GPUs only (polyphony_nccl in scripts/cmake/dependencies.cmake). Compiled by
//   every build that has NCCL's headers; never run by our tests, which have no GPU.
#pragma once

#include <memory>

#include "exec/transport/communicator.h"
#include "shared/units.h"

namespace polyphony::exec {

Bytes gpu_memory(torch::Device device);

// Collective over all ranks of `gloo`, which connect_gloo made. `device`: where this rank's tensors
// are; a CPU's when it has no GPU.
std::unique_ptr<Transport> connect_nccl(std::unique_ptr<Transport> gloo, torch::Device device);

}  // namespace polyphony::exec
