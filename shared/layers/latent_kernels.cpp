// Latent attention (Module::key_value_rank): rows are brought down to a latent of each kind, which
// tensor-parallel ranks make alike of their own rows and gather, and up to the heads' queries, keys
// and values. A head's query and key have D + R numbers, R of them rotated, its value D.
//   scores and their product with the values over P pairs: 2·P·A·(D + R) + 2·P·A·D flops forward,
//   twice that backward
// Source: DeepSeek-V2, arXiv 2405.04434, §2.1; gathered latents: Megatron-LM,
// multi_latent_attention.py. Own count.
#include "shared/layers/layer_kernels.h"

namespace polyphony {

Linear LayerKernels::query_up() const {
  const std::int64_t from = module_.query_rank > 0 ? module_.query_rank : hidden();
  return {size_.tokens, from, latent_heads() * (module_.head_dim + module_.rotary_dim), false,
          low_rank()};
}

Linear LayerKernels::key_up() const {
  return {size_.tokens, module_.key_value_rank,
          latent_heads() * (module_.head_dim + value_width(module_)), false, low_rank()};
}

// The rotated ends of queries and of the one key (9 passes, as rotate()), then heads put together
// from both parts, q and k (2).
void LayerKernels::latent_rotate() {
  passes(size_.tokens * (latent_heads() + 1) * module_.rotary_dim, 9, 10);
  passes(size_.tokens * latent_heads() * (module_.head_dim + module_.rotary_dim), 4, 2);
}

// `products`: 2 forward, 4 backward.
void LayerKernels::latent_attention(double products) {
  const std::int64_t wide = module_.head_dim + module_.rotary_dim, narrow = value_width(module_);
  const double flops = products * static_cast<double>(size_.pairs) *
                       static_cast<double>(latent_heads()) * static_cast<double>(wide + narrow);
  // Forward q, k; v, the output; backward these, its gradient and three more.
  const std::int64_t moved = products > 2 ? 4 * wide + 4 * narrow : 2 * wide + 2 * narrow;
  add(KernelKind::attention, flops, size_.tokens * latent_heads() * moved * element(),
      std::max(1, size_.sequences), 0, 0, (wide + narrow) / 2);
}

void LayerKernels::latent_forward() {
  const std::int64_t latent = module_.key_value_rank + module_.rotary_dim;
  if (module_.query_rank > 0) {
    forward_cut(query_down());
    norm(own(size_.tokens), module_.query_rank);
    if (sequence()) gather(size_.tokens, module_.query_rank);
  } else if (sequence()) {
    gather(size_.tokens, hidden());
  }
  forward_cut(query_up());
  forward_cut(key_down());
  norm(own(size_.tokens), module_.key_value_rank);
  if (sequence()) gather(size_.tokens, latent);
  forward_cut(key_up());
  latent_rotate();
  latent_attention(2);
}

void LayerKernels::latent_backward_input() {
  const std::int64_t latent = module_.key_value_rank + module_.rotary_dim;
  const bool starts = lora() && !input_grad_;  // only pairs train: nothing below them
  const auto below = [&](const Linear& l) {
    starts ? low_rank_backward(l, false) : input_gradient(l);
  };
  latent_attention(4);
  latent_rotate();
  input_gradient(key_up());
  sum(size_.tokens, latent, true);
  norm_backward(own(size_.tokens), module_.key_value_rank);
  below(key_down());
  if (module_.query_rank == 0) below(query_up());
  if (module_.query_rank > 0) {
    input_gradient(query_up());
    sum(size_.tokens, module_.query_rank, true);
    norm_backward(own(size_.tokens), module_.query_rank);
    below(query_down());
  } else if (!starts) {
    sum(size_.tokens, hidden(), true);
  }
  if (!starts) passes(own(size_.tokens) * hidden(), 3, 1);  // both ways' gradients summed
}

void LayerKernels::latent_backward_weight() {
  weight_gradient(key_up());
  weight_gradient(key_down());
  norm_weight(own(size_.tokens), module_.key_value_rank);
  weight_gradient(query_up());
  if (module_.query_rank == 0) return;
  weight_gradient(query_down());
  norm_weight(own(size_.tokens), module_.query_rank);
}

}  // namespace polyphony
