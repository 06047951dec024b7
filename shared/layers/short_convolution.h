// A gated short convolution in place of attention. A row influences only itself and the next L − 1
// rows of its sample.
//   [B, C, x] = W_in n,  z[t, c] = Σ_j w[c, j] · (B ∘ x)[t − (L − 1) + j, c],  y = W_out (C ∘ z)
//   parameters          conv_in [3H, H], with the rows of B, C and x of each channel together; conv
//                       [H, L]; out [H, H]. A tensor-parallel rank has H/t channels
//   flops               8·T·H²/t for the two matrices; gates and convolution are memory passes
//   saved activations   its input e·q·H, the output of conv_in e·T·3H/t, and (not with selective
//                       recomputation) the input of out e·T·H/t, the inputs only if their matrices
//                       train or adapt. The backward pass recomputes gates and convolution
//   weight gradients    as a separate op: the taps keep their own gradients
// There is no context parallelism: a rank lacks the L − 1 rows before its own.
// Source: LFM2, arXiv 2511.23404, and its model in huggingface/transformers (models/lfm2, without
// biases, as in published models); own count of what exec/ does.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

class ShortConvolution : public LayerKernels {
 public:
  explicit ShortConvolution(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters& add);
  void forward();
  void backward_input();  // always recomputes, as selective recomputation would
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t recomputed_bytes(const LayerBytes& bytes);
  static std::string refused(const Module& module, const ModuleLayout& layout);

 private:
  std::int64_t channels() const { return hidden() / context_.tp; }
  std::int64_t elements() const { return size_.tokens * channels(); }
  Linear in() const { return {size_.tokens, hidden(), 3 * channels(), false, low_rank()}; }
  Linear out() const { return {size_.tokens, channels(), hidden(), false, low_rank()}; }
  // Kernels between conv_in and out.
  void between_matrices();
};

}  // namespace polyphony
