// Latent attention (Module::key_value_rank): rows are brought down to a latent of each kind, which
// tensor-parallel ranks make alike of their own rows and gather, and up to the heads' queries, keys
// and values. A head's query and key have D + R numbers, R of them rotated, its value Dv; latents of
// Lq (0: queries are made of the input) and Lk, own rows q, all rows T.
//   scores and their product with the values over P pairs: 2·P·A·(D + R) + 2·P·A·Dv flops forward,
//   twice that backward
//   parameters  shared/layers/parameters.h
//   tape        e·(q·(2·Lq + 2·Lk + R) + T·A·(2·(D + R) + Dv)/t) + 2·w·q: what the norms of latents
//               read and made and their statistics, q, k and v of the heads; the output and its
//               log-sum-exp e·T·A·Dv/t + w·T·A/t; its input e·q·H. Matrices that do not train keep
//               no input: without what the norms made
// Without a low-rank pair but beside the output matrix; no context parallelism.
// Source: DeepSeek-V2, arXiv 2405.04434, §2.1; gathered latents: Megatron-LM,
// multi_latent_attention.py. Own count.
#pragma once

#include "shared/layers/layer_bytes.h"
#include "shared/layers/layer_kernels.h"
#include "shared/layers/layer_parameters.h"

namespace polyphony {

class LatentAttention : public LayerKernels {
 public:
  explicit LatentAttention(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters& add);
  void forward();
  void again();
  void backward_input();
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t again_bytes(const LayerBytes& bytes);

 private:
  std::int64_t heads() const { return module_.heads / context_.tp; }
  std::int64_t key_width() const { return module_.head_dim + module_.rotary_dim; }  // of a head
  std::int64_t latent() const { return module_.key_value_rank + module_.rotary_dim; }
  Linear query_down() const { return {own(size_.tokens), hidden(), module_.query_rank}; }
  Linear query_up() const;
  Linear key_down() const { return {own(size_.tokens), hidden(), latent()}; }
  Linear key_up() const;
  Linear out() const {
    return {size_.tokens, heads() * value_width(module_), hidden(), module_.attention_bias,
            low_rank()};
  }
  void rotate();
  void attention(double products);
};

}  // namespace polyphony
