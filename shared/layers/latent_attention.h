// Latent attention (Module::key_value_rank): rows are brought down to a latent of each kind, which
// tensor-parallel ranks make alike of their own rows and gather, and up to the heads' queries, keys
// and values. A head's query and key have D + R numbers, R of them rotated, its value Dv; latents of
// Lq (0: queries are made of the input) and Lk, own rows q, all rows T.
//   scores and their product with the values over P pairs: 2·P·A·(D + R) + 2·P·A·Dv flops forward,
//   twice that backward
//   parameters  shared/chunk/parameters.h
//   tape        its input e·q·H (where the module trains or adapts);
//               e·(q·(Lk + R) + T·(Lk + R)) + w·q   what the joint matrix down made, its norm's
//                                                   statistics, and the latents of all rows
//               e·(q·Lq + T·Lq) + w·q               of queries likewise; T·Lq is an input of a matrix
//               e·T·H                               without Lq, where rows are gathered: likewise
//               e·T·A/t·((D + R) + (D + Dv))        queries, keys and values of the heads
//               e·T·A·Dv/t + w·T·A/t                the output and its log-sum-exp; selective
//                                                   recomputation without
//               LoRA: e·r more of each matrix, of its rows
//   weight part x and dy of the matrices down for own rows, up for all; the input of both down once;
//               what reads the joint row keeps the whole of it
// Rows that came together keep their padding. No context parallelism in the executor.
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
  void again();
  void backward_input(bool again);
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t again_bytes(const LayerBytes& bytes);
  static std::string refused(const Module& module, const ModuleLayout& layout);

 private:
  std::int64_t heads() const { return module_.heads / context_.tp; }
  std::int64_t key_width() const { return module_.head_dim + module_.rotary_dim; }  // of a head
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
