// Accumulates gradients in a wider format than that of weights and activations: fp32 for bf16.
// Products of two bf16 numbers are exact in fp32, and every sum here is computed in fp32.
//
// On a GPU the GEMM reads bf16 and adds to fp32 (at::addmm_out with an out_dtype). CPUs have no
// such kernel: dy and x are converted first (6 bytes read and written per element), and the GEMM
// runs at fp32 speed. Where the formats are equal, these are the usual operators.
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec {

// Returns the format of the gradient of a parameter whose values have format `values`.
inline torch::Dtype gradient_type(torch::Dtype values) {
  return values == torch::kBFloat16 ? torch::kFloat32 : values;
}
inline torch::Tensor widened(const torch::Tensor& x) {
  return x.to(gradient_type(x.scalar_type()));
}
// gradient += dyᵀ x
inline void add_product(torch::Tensor& gradient, const torch::Tensor& dy, const torch::Tensor& x) {
  if (dy.scalar_type() == gradient.scalar_type()) {
    gradient.addmm_(dy.t(), x);
  } else if (dy.is_cpu()) {
    gradient.addmm_(widened(dy).t(), widened(x));
  } else {
    at::addmm_out(gradient, gradient, dy.t(), x, gradient.scalar_type());
  }
}
// gradient += Σ dy over its rows
inline void add_rows(torch::Tensor& gradient, const torch::Tensor& dy) {
  gradient.add_(dy.sum({0}, /*keepdim=*/false, gradient.scalar_type()));
}

}  // namespace polyphony::exec
