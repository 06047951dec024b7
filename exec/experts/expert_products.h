// Multiplies experts' rows by their matrices (a grouped GEMM), in one launch for all experts where
// LibTorch has a kernel for it.
//   rows [R, in], grouped by expert; matrices [E, in, out], contiguous along either in or out
//   -> [R, out]
//
// at::_grouped_mm (LibTorch 2.11, aten/src/ATen/native/cuda/GroupedBlas.cpp) has such a kernel for
// bf16 on GPUs of compute capability 9.x and 10.x, for fewer than 1024 experts, addresses and
// strides that are multiples of 16 bytes, and no biases. Elsewhere it would wait for the host, so
// there each expert has a GEMM of its own.
//
// Weight gradients always use one GEMM per expert. The grouped kernel returns results in the format
// of its inputs and cannot accumulate, so what each microbatch adds to an fp32 gradient
// (exec/autograd/wide_gradient.h) would be rounded to bf16 first. That is an error of 1.7e-3 of the
// gradient, however many microbatches there are, where sums in fp32 have an error of 2e-7 (512 rows
// per expert, normal numbers; rounding of the inputs causes 2.4e-3). It would also move 12 bytes
// per weight where an accumulating GEMM moves 8.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "exec/experts/expert_rows.h"
#include "exec/parameters/init.h"

namespace polyphony::exec {

// True if sizes, strides and addresses allow a single launch and there are rows and more than one
// expert.
bool can_be_grouped(const torch::Tensor& rows, const torch::Tensor& matrices);
// As above, and the device has the kernel. `capability`: the major number of its compute capability
// (0: no CUDA device).
bool is_grouped(const torch::Tensor& rows, const torch::Tensor& matrices, int capability);

// Returns rows × matrices + biases. biases: [E, out], or null for none. The single launch does not
// synchronize with the host.
torch::Tensor expert_products(const torch::Tensor& rows, const torch::Tensor& matrices,
                              const ExpertRows& expert_rows,
                              const LocalParameter* biases = nullptr);

}  // namespace polyphony::exec
