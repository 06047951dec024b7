// Fused AdamW: updates all tensors of a parameter group in one kernel launch, including fp32 master
// copies, rounded bf16 values, gradient clipping and skipped steps. Each gradient is read once,
// without temporary tensors. exec/parameters/optimizer.h has the formulas.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/torch_pch.h"

namespace polyphony::exec::kernels {

// The tensors of one parameter: flat and contiguous. Gradient, moments and master copy have the
// value's format, or fp32 if that is bf16.
struct AdamWPiece {
  torch::Tensor value, gradient, first, second;
  torch::Tensor master;  // the fp32 master copy of bf16 values; else undefined
  bool decays = false;
};

struct AdamWNumbers {
  double beta1, beta2, epsilon, weight_decay, rate;
  // Zero-dimensional tensors on the parameters' device:
  torch::Tensor clip;   // double: factor for the gradient; undefined: 1
  torch::Tensor count;  // float: number of this step, from 1
  torch::Tensor skip;   // float: if not 0, nothing is changed; undefined: 0
};

// Takes AdamW steps. Keeps the list of tensor addresses on the device until an address changes.
class AdamWGroup {
 public:
  void step(const std::vector<AdamWPiece>& pieces, const AdamWNumbers& numbers);

 private:
  std::vector<std::int64_t> tensor_words_, chunk_words_;
  torch::Tensor tensors_, chunks_;  // the same lists, on the device
};

}  // namespace polyphony::exec::kernels
