// AdamW over all tensors of a group in one launch, with masters, copies in the values' format, the clip and what is skipped:
// the gradient is read once, nothing else is made of it (exec/parameters/optimizer.h has the formulas).
#pragma once

#include <cstdint>
#include <vector>

#include "exec/torch_pch.h"

namespace polyphony::exec::kernels {

// Flat and contiguous; gradient, moments and master in the value's format, fp32 for bf16.
struct AdamWPiece {
  torch::Tensor value, gradient, first, second;
  torch::Tensor master;  // of bf16 values; else undefined
  bool decays = false;
};

struct AdamWNumbers {
  double beta1, beta2, epsilon, weight_decay, rate;
  // Without dimensions, on the tensors' device:
  torch::Tensor clip;   // double: multiplies the gradient; undefined: 1
  torch::Tensor count;  // float: of this step, from 1
  torch::Tensor skip;   // float: not 0, nothing changes; undefined: 0
};

// Keeps on the device where the tensors are, until they are elsewhere.
class AdamWGroup {
 public:
  void step(const std::vector<AdamWPiece>& pieces, const AdamWNumbers& numbers);

 private:
  std::vector<std::int64_t> tensor_words_, chunk_words_;
  torch::Tensor tensors_, chunks_;  // the same, on their device
};

}  // namespace polyphony::exec::kernels
