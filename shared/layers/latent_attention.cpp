#include "shared/layers/latent_attention.h"

namespace polyphony {

void LatentAttention::parameters(LayerParameters& add) {
  const Module& m = add.module();
  const std::int64_t heads = m.heads, key_width = m.head_dim + m.rotary_dim;
  if (m.query_rank > 0) {
    add.matrix("q_down.weight", m.query_rank, m.hidden, Cut::replicated, Rows::own);
    add.norm("q_down_norm", m.query_rank, false);
  }
  add.matrix("q_up.weight", heads * key_width, m.query_rank > 0 ? m.query_rank : m.hidden,
             Cut::rows);
  add.matrix("kv_down.weight", m.key_value_rank + m.rotary_dim, m.hidden, Cut::replicated,
             Rows::own);
  add.norm("kv_down_norm", m.key_value_rank, false);
  // By head [k | v].
  add.matrix("kv_up.weight", heads * (m.head_dim + value_width(m)), m.key_value_rank, Cut::rows);
  add.attention_out(heads * value_width(m), m.attention_bias);
}

Linear LatentAttention::query_up() const {
  const std::int64_t from = module_.query_rank > 0 ? module_.query_rank : hidden();
  return {size_.tokens, from, heads() * key_width()};
}

Linear LatentAttention::key_up() const {
  return {size_.tokens, module_.key_value_rank,
          heads() * (module_.head_dim + value_width(module_))};
}

// The rotated ends of queries and of the one key (9 passes, as in self-attention), then heads put
// together from both parts, q and k (2).
void LatentAttention::rotate() {
  passes(size_.tokens * (heads() + 1) * module_.rotary_dim, 9, 10);
  passes(size_.tokens * heads() * key_width(), 4, 2);
}

// `products`: 2 forward, 4 backward.
void LatentAttention::attention(double products) {
  const std::int64_t wide = key_width(), narrow = value_width(module_);
  const double flops = products * static_cast<double>(size_.pairs) * static_cast<double>(heads()) *
                       static_cast<double>(wide + narrow);
  // Forward q, k; v, the output; backward these, its gradient and three more.
  const std::int64_t moved = products > 2 ? 4 * wide + 4 * narrow : 2 * wide + 2 * narrow;
  add(KernelKind::attention, flops, size_.tokens * heads() * moved * element(),
      std::max(1, size_.sequences), 0, 0, (wide + narrow) / 2);
}

void LatentAttention::again() { attention(2); }

void LatentAttention::forward() {
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
  if (sequence()) gather(size_.tokens, latent());
  forward_cut(key_up());
  rotate();
  attention(2);
  forward_row(out());
}

void LatentAttention::backward_input() {
  input_gradient_row(out());
  attention(4);
  rotate();
  input_gradient(key_up());
  sum(size_.tokens, latent(), true);
  norm_backward(own(size_.tokens), module_.key_value_rank);
  input_gradient(key_down());
  input_gradient(query_up());
  if (module_.query_rank > 0) {
    sum(size_.tokens, module_.query_rank, true);
    norm_backward(own(size_.tokens), module_.query_rank);
    input_gradient(query_down());
  } else {
    sum(size_.tokens, hidden(), true);
  }
  passes(between_blocks(), 3, 1);  // both ways' gradients summed
}

void LatentAttention::backward_weight() {
  weight_gradient(out());
  weight_gradient(key_up());
  weight_gradient(key_down());
  norm_weight(own(size_.tokens), module_.key_value_rank);
  weight_gradient(query_up());
  if (module_.query_rank == 0) return;
  weight_gradient(query_down());
  norm_weight(own(size_.tokens), module_.query_rank);
}

std::int64_t LatentAttention::again_bytes(const LayerBytes& bytes) {
  const std::int64_t heads = bytes.module.heads / bytes.context.tp;
  return bytes.size.tokens * heads * (bytes.element() * value_width(bytes.module) + bytes.wide());
}

std::int64_t LatentAttention::tape(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  const std::int64_t inputs = bytes.matrix_input() + bytes.low_rank(1);
  if (!bytes.reaches_attention()) return inputs;
  const std::int64_t own = bytes.own(bytes.size.tokens), heads = m.heads / bytes.context.tp;
  const int sides = bytes.trains() ? 2 : 1;
  std::int64_t latents =
      own * (bytes.element() * (sides * m.key_value_rank + m.rotary_dim) + bytes.wide());
  if (m.query_rank > 0) latents += own * (bytes.element() * sides * m.query_rank + bytes.wide());
  const std::int64_t of_heads = bytes.element() * bytes.size.tokens * heads *
                                (2 * (m.head_dim + m.rotary_dim) + value_width(m));
  const bool selective = bytes.recompute == Recompute::selective;
  return inputs + latents + of_heads + (selective ? 0 : again_bytes(bytes));
}

}  // namespace polyphony
