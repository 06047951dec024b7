// Determines the class of a kernel by its name, or, if the name is not conclusive, by the operator
// that launched it. Uses tables of parts of names; the first match decides.
//
// Sources, as of 2026: PyTorch (aten/src/ATen/native/cuda, torch/_inductor: triton_poi, _red,
// _per), cuBLAS (nvjet, sgemm, xmma), cuDNN, CUTLASS, FlashAttention, Transformer Engine, Apex,
// FBGEMM, CUB, NCCL and RCCL (kernels are named "nccl…Kernel…"), rocBLAS (Cijk_), Composable
// Kernel; names seen in the traces of traces/samples/.
#pragma once

#include <optional>
#include <string_view>

#include "traces/kineto/device_trace.h"

namespace polyphony::traces {

// Returns the class of a kernel that the host operator `op` launched.
KernelClass kernel_class(std::string_view kernel, std::string_view op);
// Returns the class of an operator by its own name, for operators that run on the host; nothing if
// it computes nothing itself: it only allocates or makes a view, is no operator of ATen, or is a
// node of autograd.
std::optional<KernelClass> operator_class(std::string_view op);
// Returns the class of an event of category "gpu_memcpy" or "gpu_memset", by its name ("Memcpy HtoD
// (Pinned -> Device)").
KernelClass copy_class(std::string_view event);
bool is_collective_kernel(std::string_view kernel);

// Returns the collective, given a kernel's name ("ncclDevKernel_AllReduce_Sum_f32_RING_LL"), a name
// of torch.distributed ("nccl:all_reduce", "_allgather_base"), or the argument "Collective name"
// ("allreduce").
CollectiveCall collective_call(std::string_view text);

}  // namespace polyphony::traces
