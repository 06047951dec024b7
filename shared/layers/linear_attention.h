// Linear attention by the gated delta rule: each of V value heads has a state S [D, D] that every row
// first lets decay, then corrects towards its value, then reads:
//   S ← α S + β k (v − α Sᵀk)ᵀ,  o = Sᵀq,   α = exp(−exp(w)·softplus(a + b)),  β = σ(·)
// q, k and v pass a convolution by channel over the last rows and SiLU, q and k are scaled to length
// one; o is normed by head and multiplied by silu(z). K key heads serve r = V/K value heads each.
// In chunks of C rows: inside a chunk products of C × C and a triangular system, between chunks the
// state. Flops a row and value head: forward 8·C·D + 6·D², backward twice that, after the forward
// again: from the matrix' rows to the output matrix' input nothing is kept between.
//   parameters  shared/chunk/parameters.h; tensor-parallel ranks have K/t key heads
//   tape        its input e·q·H, what the matrix made e·T·(2(K + V)·D + 2·V)/t, and (selective
//               recomputation without) the output matrix' input e·T·V·D/t, where these train or adapt
//   weight part of the convolution, decays and the norm their own gradients
// No context parallelism: a state passes from row to row.
// Source: gated delta networks, arXiv 2412.06464 §3.3; Qwen3-Next's config.json and model; flops:
// own count of the chunked form there.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

// Rows of a chunk. The published kernels' choice (fla-org/flash-linear-attention).
inline constexpr std::int64_t kDeltaChunk = 64;

class LinearAttention : public LayerKernels {
 public:
  explicit LinearAttention(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters& add);
  void forward();
  void backward_input();  // what selective recomputation asks every one does
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t again_bytes(const LayerBytes& bytes);
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
  // From what the matrix made to what the output matrix reads.
  void between_matrices();
};

}  // namespace polyphony
