// Linear attention by the gated delta rule: each of V value heads has a state S [D, D] that every row
// first lets decay, then corrects towards its value, then reads:
//   S ← α S + β k (v − α Sᵀk)ᵀ,  o = Sᵀq,   α = exp(−exp(w)·softplus(a + b)),  β = σ(·)
// q, k and v pass a convolution by channel over the last rows and SiLU, q and k are scaled to length
// one; o is normed by head and multiplied by silu(z). K key heads serve r = V/K value heads each.
// In chunks of C rows: inside a chunk products of C × C (with a triangular solve), between chunks the
// state. Flops a row and value head: forward 10·C·D + 6·D² + C², backward twice that.
//   parameters  shared/layers/parameters.h; tensor-parallel ranks have K/t key heads
//   tape        rows T: e·T·((2K + V)·D/t·2 + 3·V·D/t) + 3·w·T·V/t + w·⌈T/C⌉·V·D²/t: q, k, v before
//               and after the convolution, z, o and, where the output matrix wants it, the gated o;
//               α, β and the norm's scales; states at the chunks' ends. Selective recomputation runs
//               the rule again: without o and the states
// No context parallelism: a state passes from row to row. Without a low-rank pair but beside the
// output matrix.
// Source: gated delta networks, arXiv 2412.06464 §3.3; Qwen3-Next's config.json and model; flops:
// own count of the chunked form there.
#pragma once

#include "shared/layers/layer_bytes.h"
#include "shared/layers/layer_kernels.h"
#include "shared/layers/layer_parameters.h"

namespace polyphony {

// Rows of a chunk. The published kernels' choice (fla-org/flash-linear-attention).
inline constexpr std::int64_t kDeltaChunk = 64;

class LinearAttention : public LayerKernels {
 public:
  explicit LinearAttention(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters& add);
  void forward();
  void again();
  void backward_input();
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t again_bytes(const LayerBytes& bytes);

 private:
  std::int64_t value_heads() const { return module_.linear_value_heads / context_.tp; }
  std::int64_t values() const { return value_heads() * module_.linear_head_dim; }
  std::int64_t mixed() const {  // q, k and v
    return values() + 2 * module_.linear_key_heads / context_.tp * module_.linear_head_dim;
  }
  Linear in() const { return {size_.tokens, hidden(), mixed() + values() + 2 * value_heads()}; }
  Linear out() const { return {size_.tokens, values(), hidden(), false, low_rank()}; }
  void rule(int passes_over);
};

}  // namespace polyphony
