// The gated short convolution in place of attention: what a row says to its sample reaches the L − 1
// rows behind it, and no further.
//   [B, C, x] = W_in n,  z[t, c] = Σ_j w[c, j] · (B ∘ x)[t − (L − 1) + j, c],  y = W_out (C ∘ z)
//   parameters  conv_in [3H, H], channel by channel its rows of B, C and x; conv [H, L]; out [H, H].
//               A tensor-parallel rank has H/t channels
//   FLOPs       of the two matrices 8·T·H²/t; gates and convolution are passes over memory
//   tape        its input e·q·H, what the matrix made e·T·3H/t, and (selective recomputation
//               without) the output matrix' input e·T·H/t, where these train or adapt: the backward
//               gates and convolves again
//   weight part of the taps their own gradients
// No context parallelism: a rank lacks the L − 1 rows before its own.
// Source: LFM2, arXiv 2511.23404, and its model in huggingface/transformers (models/lfm2, without
// biases, as published models are); own count of what exec/ does.
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
  void backward_input();  // what selective recomputation asks every one does
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t again_bytes(const LayerBytes& bytes);
  static std::string refused(const Module& module, const ModuleLayout& layout);

 private:
  std::int64_t channels() const { return hidden() / context_.tp; }
  std::int64_t elements() const { return size_.tokens * channels(); }
  Linear in() const { return {size_.tokens, hidden(), 3 * channels(), false, low_rank()}; }
  Linear out() const { return {size_.tokens, channels(), hidden(), false, low_rank()}; }
  // From what the matrix made to what the output matrix reads.
  void between_matrices();
};

}  // namespace polyphony
