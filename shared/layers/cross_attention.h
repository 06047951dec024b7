// Attention across, of a diffusion block: its T rows, normed, ask the C rows of width W that condition
// the module, item by item.
//   parameters  cross_norm, cross_query [A·D, H], cross_key_value [2·A·D, W] by head [k | v],
//               cross_out [H, A·D], all with biases
//   tape        e·(q·2H + T·2·A·D/t + C·2·A·D/t) + 2·w·q + w·T·A/t: inputs of norm and query, q, the
//               attention output, k and v, statistics, log-sum-exp. Without gradients of matrices their
//               inputs go; LoRA keeps those of the adapted ones, and e·r·(2·T + C)
// Source: own count of what exec/ does; the products' FLOPs as Wan's own count.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

class CrossAttention : public LayerKernels {
 public:
  explicit CrossAttention(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters& add);
  void forward();
  // False when nothing before needs a gradient: the first block of a frozen module.
  bool backward_input();
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);

 private:
  std::int64_t query_width() const {
    return std::int64_t{module_.heads} * module_.head_dim / context_.tp;
  }
  bool conditioning_grad() const { return context_.input_grad && context_.edge_grad; }
  Linear query() const;
  Linear key_value() const;
  Linear out() const { return {size_.tokens, query_width(), hidden(), true, low_rank()}; }
  void attention(double flops_per_pair_and_width, int q_like, int k_like);
};

}  // namespace polyphony
