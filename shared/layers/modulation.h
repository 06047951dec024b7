// Modulation of diffusion layers: shifts, scales and gates that a layer computes from time features
// with two matrices of its own, [R, 256] and [parts·H, R], and the norms and residual sums that use
// them (exec/layers/diffusion.h). There are n items, with one kernel for each if items differ.
// Source: adaLN-Zero, Peebles and Xie, arXiv 2212.09748; own count of what exec/ does.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

class Modulated : public LayerKernels {
 public:
  // The second matrix starts at zero, so blocks start as the identity.
  static void modulation_parameters(LayerParameters& add, int parts);
  // Saved bytes of one norm per item: 1 + scale, e·H; in bf16 both 1 + scale and the shift in fp32,
  // 4·2H.
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
