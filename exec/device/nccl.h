// Ranks with a GPU each: collectives and messages of CUDA tensors by NCCL, queued on the GPU's streams
// (exec/device/device_transport.h); what is the host's over the Gloo transport beneath.
//   NCCL refuses two ranks on one GPU: when any rank shares its GPU or has none, everything goes
//   through host memory, and rank 0 says so on stderr.
//   In builds with GPUs only (polyphony_nccl in scripts/cmake/dependencies.cmake). Compiled by
//   every build that has NCCL's headers; never run by our tests, which have no GPU: those run what
//   is not NCCL's own with a double of its groups (tests/exec/device_double/queued_backend.h).
#pragma once

#include <memory>

#include "exec/transport/communicator.h"
#include "shared/units.h"

namespace polyphony::exec {

Bytes gpu_memory(torch::Device device);

// Collective over all ranks of `gloo`, which connect_gloo made. `device`: where this rank's tensors
// are; a CPU's when it has no GPU. `in_order`: exec/device/device_group.h.
std::unique_ptr<Transport> connect_nccl(std::unique_ptr<Transport> gloo, torch::Device device,
                                        bool in_order);

}  // namespace polyphony::exec
