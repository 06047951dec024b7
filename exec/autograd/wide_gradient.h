// Adding to gradients that are wider than what they come from: fp32 for bf16 weights and
// activations. Products of two bf16 numbers are exact in fp32, and every sum here is taken in fp32.
//   On a GPU the matrix product reads bf16 and adds to fp32 (at::addmm_out with an out_dtype). CPUs
//   have no such kernel: dy and x are converted first, 6 bytes read and written for each of their
//   elements, and the product runs at fp32 speed.
// Where the formats are equal, these are the plain operators.
#pragma once

#include "exec/torch_pch.h"

namespace polyphony::exec {

// The format of the gradient of a parameter held in `values`.
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
