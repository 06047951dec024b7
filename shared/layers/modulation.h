// Shifts, scales and gates that diffusion layers make of the features of time by two matrices of
// their own, [R, 256] and [parts·H, R], and norms and sums that they change (exec/layers/diffusion.h). n
// items; one kernel each where items differ.
// Source: adaLN-Zero, Peebles and Xie, arXiv 2212.09748; own count of what exec/ does.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

class Modulated : public LayerKernels {
 public:
  // Blocks begin as the identity: the second matrix is zero.
  static void modulation_parameters(LayerParameters& add, int parts);
  // Of one norm, by item: 1 + scale; in bf16 this and the shift in fp32: e·H, bf16 4·2H.
  static std::int64_t adaptive_bytes(const LayerBytes& bytes);

 protected:
  explicit Modulated(const LayerKernels& layer) : LayerKernels(layer) {}
  Linear time_in() const;
  Linear time_out(int parts) const;
  void modulation(int parts);
  void modulation_backward(int parts);
  void modulation_weight(int parts);
  void joined();
  void adaptive_norm();
  void adaptive_norm_backward();
  void gated_sum();
  void gated_sum_backward();
};

}  // namespace polyphony
