// Products of experts' rows with their matrices, all experts in one launch where LibTorch has a kernel for it.
//   rows [R, in], those of one expert after those of another; matrices [E, in, out], either of in and out without a gap
//   -> [R, out]
// at::_grouped_mm (LibTorch 2.11, aten/src/ATen/native/cuda/GroupedBlas.cpp) has one for bf16 on GPUs of compute capability
// 9.x and 10.x, for fewer than 1024 experts, addresses and strides of whole 16 bytes, no biases; elsewhere it would wait for the
// host, so there each expert has a product of its own. Weight gradients always do: the kernel's results are in
// its inputs' format and added to nothing, so that what each work adds to a gradient in fp32 (exec/autograd/wide_gradient.h)
// would be rounded to bf16 first. That is an error of 1.7e-3 of the gradient, however many works there are, where sums in fp32
// make 2e-7 (512 rows an expert, normal numbers; the inputs' own roundings make 2.4e-3), and moves 12 bytes of each weight where
// products that add move 8.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "exec/layers/expert_rows.h"
#include "exec/parameters/init.h"

namespace polyphony::exec {

// Sizes, strides and addresses are such that one launch can do it; rows are in `rows` and there is more than one expert.
bool can_be_grouped(const torch::Tensor& rows, const torch::Tensor& matrices);
// And the device has the kernel, by its compute capability (0: no CUDA device).
bool is_grouped(const torch::Tensor& rows, const torch::Tensor& matrices, int capability);

// biases [E, out], null: none. One launch asks the host for nothing.
torch::Tensor expert_products(const torch::Tensor& rows, const torch::Tensor& matrices,
                              const ExpertRows& expert_rows,
                              const LocalParameter* biases = nullptr);

}  // namespace polyphony::exec
