// The transport for ranks that have a GPU each: NCCL queues collectives and messages of CUDA
// tensors on the GPU's streams (exec/device/device_transport.h); host tensors use the Gloo
// transport.
//
// NCCL does not support two ranks on one GPU. If any rank shares its GPU or has none, all tensors
// go through host memory, and rank 0 reports it on stderr.
//
// It is part of GPU builds only (polyphony_nccl in scripts/cmake/dependencies.cmake), and is
// compiled by every build that has NCCL's headers. nccl_test runs it without a GPU, over doubles of
// NCCL and CUDA (tests/exec/nccl_double/nccl_double.h); exec_test runs everything around NCCL with
// a double of its groups (tests/exec/device_double/queued_backend.h).
#pragma once

#include <memory>

#include "exec/transport/communicator.h"
#include "shared/units.h"

namespace polyphony::exec {

// Returns the GPU's total memory.
Bytes gpu_memory(torch::Device device);

// Returns the GPU's number of multiprocessors.
int gpu_processors(torch::Device device);

// Returns a new stream, which is never destroyed. `urgent`: of the highest priority that the GPU
// has.
c10::Stream new_gpu_stream(torch::Device device, bool urgent);

// Returns the transport over `gloo`, which connect_gloo() made. Collective over all its ranks.
// `device`: where this rank's tensors are; the CPU for a rank without a GPU. `in_order`: see
// exec/device/device_group.h.
std::unique_ptr<Transport> connect_nccl(std::unique_ptr<Transport> gloo, torch::Device device,
                                        bool in_order);

}  // namespace polyphony::exec
