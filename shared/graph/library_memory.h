// Memory of a rank's GPU that libraries take besides tensors, in runs of this project's executor:
// the CUDA context, NCCL's buffers, and cuBLAS's workspaces. Fragmentation of the allocator is not
// part of it; a search leaves a margin for that (Search::memory_margin).
//
//   base       1.06 GB: context, kernels and a communicator that is not connected, measured on H100
//              before the first call (NVIDIA/nccl#1685)
//   workspace  2 threads with a cuBLAS handle · 32 MiB (LibTorch 2.11, CUDAContext.h, on Hopper)
//   FP8        operands of a GEMM, one byte for each number, and a block of its result before that
//              is added to a weight gradient (kFp8SumBytes): of the GEMM whose operands are largest
//   NCCL       by connection of two ranks on one channel: 10 MiB that receive for three protocols,
//              2 MiB of its sender, and 2 MiB more at either end (allocation sizes and the sum of
//              NVIDIA/nccl#1685: 7 peers · 32 channels · 14 MiB = 3.29 GB, measured 3.28)
//     group of 2       24 channels, each with one connection in each direction (vllm#4277)
//     larger group     24 channels, each with a ring and a tree: two connections in each direction.
//                      Buffers of in-switch sums (NVLS) are not counted: no source
//     its exchanges    experts and context parallelism: 32 channels to each rank of the node, 2 to
//                      each other rank (src/enqueue.cc of NCCL 2.28)
//                      Not counted: exchanges of groups with --deterministic, and of sharded
//                      parameters that do not divide evenly by the group
//     messages         of this step's pairs; those of earlier steps stay. 4 channels to a rank of
//                      the node (kMessageProcessors), 2 to another
#pragma once

#include <vector>

#include "shared/graph/memory.h"
#include "shared/hardware/hardware.h"
#include "shared/program/program.h"

namespace polyphony {

// Returns the memory by rank of the Program; 0 if the profile is not of GPUs with NCCL (for RCCL's
// buffers there is no source), or of another framework, whose groups are others.
std::vector<Bytes> library_memory(const Program& program, const Cluster& cluster,
                                  const HardwareProfile& profile);

// Returns a lower bound for every rank of the layout's Program, from its grids alone: without
// messages, exchanges between layouts, and operands in FP8.
Bytes least_library_memory(const Model& model, const Layout& layout, const Cluster& cluster,
                           const HardwareProfile& profile);

// Returns predict_memory() with the memory of libraries.
std::vector<RankMemory> predict_needed_memory(const Program& program, const Timeline& timeline,
                                              const Cluster& cluster,
                                              const HardwareProfile& profile);

}  // namespace polyphony
