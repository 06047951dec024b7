// Multi-head latent attention (Module::key_value_rank). A down matrix projects the rows to a
// latent; tensor-parallel ranks compute it for their own rows and gather it. An up matrix expands
// it to the heads' keys and values. Queries have a latent of their own, or none.
//   Symbols: a head's query and key have D + R numbers, of which R are rotated, and its value Dv;
//   latents have Lq (0: queries are computed from the input) and Lk numbers; q own rows, T all
//   rows.
//   flops               scores and their GEMM with the values over P pairs: 2·P·A·(D + R) +
//                       2·P·A·Dv forward, twice that backward
//   parameters          shared/kernels/parameter.h
//   saved activations   its input e·q·H (if the module trains or adapts);
//     e·(q·(Lk + R) + T·(Lk + R)) + w·q   output of kv_down, statistics of its norm, and the
//                                         latents of all rows
//     e·(q·Lq + T·Lq) + w·q               the same for queries; T·Lq only as an input of a matrix
//     e·T·H                               without Lq, if rows are gathered: the input of q_up
//     e·T·A/t·((D + R) + (D + Dv))        queries, keys and values of the heads
//     e·T·A·Dv/t + w·T·A/t                output and log-sum-exp; not with selective recomputation
//     LoRA                                e·r more for each row of each matrix
//   weight gradients    as a separate op: x and dy of the down matrices for own rows, of the up
//                       matrices for all rows; the input of both down matrices is counted once; a
//                       matrix that reads part of the joint row of latent and rotated key keeps all
//                       of the row
// Gathered rows keep their padding. The executor has no context parallelism for it.
// Source: DeepSeek-V2, arXiv 2405.04434, §2.1; gathered latents: Megatron-LM,
// multi_latent_attention.py. Own count.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

class LatentAttention : public LayerKernels {
 public:
  explicit LatentAttention(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters& add);
  void forward();
  // From the up-projected rows to the attention output: what selective recomputation runs again.
  void recompute_attention();
  void backward_input(bool again);
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t recomputed_bytes(const LayerBytes& bytes);
  static std::string refused(const Module& module, const ModuleLayout& layout);

 private:
  std::int64_t heads() const { return module_.heads / context_.tp; }
  std::int64_t key_width() const { return module_.head_dim + module_.rotary_dim; }  // per head
  std::int64_t latent() const { return module_.key_value_rank + module_.rotary_dim; }
  Linear query_down() const {
    return {own(size_.tokens), hidden(), module_.query_rank, false, low_rank()};
  }
  Linear query_up() const;
  Linear key_down() const { return {own(size_.tokens), hidden(), latent(), false, low_rank()}; }
  Linear key_up() const;
  Linear out() const {
    return {size_.tokens, heads() * value_width(module_), hidden(), module_.attention_bias,
            low_rank()};
  }
  void rotate();
  void attention(double products);
};

}  // namespace polyphony
