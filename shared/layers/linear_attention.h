// Linear attention with the gated delta rule. Each of V value heads has a state S [D, D], which
// decays at every row, is then corrected towards the row's value, and is then read:
//   S ← α S + β k (v − α Sᵀk)ᵀ,  o = Sᵀq,   α = exp(−exp(w)·softplus(a + b)),  β = σ(·)
// q, k and v pass a per-channel convolution over the last rows and SiLU; q and k are scaled to unit
// length; o is normalized per head and multiplied by silu(z). K key heads serve r = V/K value heads
// each. There is no context parallelism, because the state passes from row to row.
//
//   flops               computed in chunks of C rows: GEMMs of C × C and a triangular system within
//                       a chunk, the state between chunks. Per row and value head: forward
//                       8·C·D + 6·D², backward twice that, plus a second forward, because nothing
//                       between linear_in's output and out's input is saved
//   parameters          shared/kernels/parameter.h; tensor-parallel ranks have K/t key heads
//   saved activations   its input e·q·H, the output of linear_in e·T·(2(K + V)·D + 2·V)/t, and (not
//                       with selective recomputation) the input of out e·T·V·D/t, the inputs only
//                       if their matrices train or adapt
//   weight gradients    as a separate op: convolution, decays and norm keep their own gradients
// Source: gated delta networks, arXiv 2412.06464 §3.3; Qwen3-Next's config.json and model; flops:
// own count of the chunked form of these.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

// Rows per chunk, as in the published kernels (fla-org/flash-linear-attention).
inline constexpr std::int64_t kDeltaChunk = 64;

class LinearAttention : public LayerKernels {
 public:
  explicit LinearAttention(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters& add);
  void forward();
  void backward_input();  // always recomputes the attention, as selective recomputation would
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t recomputed_bytes(const LayerBytes& bytes);
  static std::string refused(const Module& module, const ModuleLayout& layout);

 private:
  std::int64_t value_heads() const { return module_.linear_value_heads / context_.tp; }
  std::int64_t values() const { return value_heads() * module_.linear_head_dim; }
  std::int64_t mixed() const {  // q, k and v
    return values() + 2 * module_.linear_key_heads / context_.tp * module_.linear_head_dim;
  }
  Linear in() const {
    return {size_.tokens, hidden(), mixed() + values() + 2 * value_heads(), false, low_rank()};
  }
  Linear out() const { return {size_.tokens, values(), hidden(), false, low_rank()}; }
  void rule(int times);
  // Kernels between linear_in and out.
  void between_matrices();
};

}  // namespace polyphony
