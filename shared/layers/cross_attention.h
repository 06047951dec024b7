// Cross-attention of a diffusion block: queries from the block's T rows, after a norm; keys and
// values from the C conditioning rows, of width W, of the same item.
//   parameters          cross_norm, cross_query [A·D, H], cross_key_value [2·A·D, W] by head [k |
//                       v], cross_out [H, A·D], all with biases
//   saved activations   e·(q·2H + T·2·A·D/t + C·2·A·D/t) + 2·w·q + w·T·A/t: inputs of the norm and
//                       of the query matrix, q, attention output, k and v, statistics, log-sum-exp.
//                       If matrices do not train, their inputs are omitted; LoRA keeps those of
//                       adapted matrices, and adds e·r·(2·T + C)
// Source: own count of what exec/ does; the GEMMs' FLOPs agree with Wan's own count.
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
  // Returns false if nothing before it needs a gradient: in the first block of a frozen module.
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
