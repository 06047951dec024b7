#include "shared/layers/latent_attention.h"

namespace polyphony {

void LatentAttention::parameters(LayerParameters& add) {
  const Module& m = add.module();
  const std::int64_t heads = m.heads, key_width = m.head_dim + m.rotary_dim,
                     joint = m.key_value_rank + m.rotary_dim;
  const auto adapted = [&](const char* name, std::int64_t rows, std::int64_t columns,
                           bool up) -> Parameter& {
    Parameter& matrix = add.matrix(name, rows, columns, up ? Cut::rows : Cut::replicated,
                                   up ? Rows::tokens : Rows::own);
    matrix.adapted = true;
    matrix.stays = true;
    return matrix;
  };
  if (m.query_rank > 0) {
    adapted("q_down.weight", m.query_rank, m.hidden, false).row_width = 0;  // kv_down's input
    add.norm("q_down_norm", m.query_rank, false);
  }
  const std::int64_t from = m.query_rank > 0 ? m.query_rank : m.hidden;
  adapted("q_up.weight", heads * key_width, from, true).row_width = m.query_rank > 0 ? -1 : 0;
  adapted("kv_down.weight", joint, m.hidden, false);
  add.norm("kv_down_norm", m.key_value_rank, false).row_width = joint;
  // By head [k | v].
  adapted("kv_up.weight", heads * (m.head_dim + value_width(m)), m.key_value_rank, true).row_width =
      joint;
  add.attention_out(heads * value_width(m), m.attention_bias);
}

Linear LatentAttention::query_up() const {
  const std::int64_t from = module_.query_rank > 0 ? module_.query_rank : hidden();
  return {size_.tokens, from, heads() * key_width(), false, low_rank()};
}

Linear LatentAttention::key_up() const {
  return {size_.tokens, module_.key_value_rank, heads() * (module_.head_dim + value_width(module_)),
          false, low_rank()};
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

void LatentAttention::again() {
  rotate();
  attention(2);
}

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
  again();
  forward_row(out());
}

void LatentAttention::backward_input() {
  input_gradient_row(out());
  attention(4);
  rotate();
  input_gradient(key_up());
  sum(size_.tokens, latent(), true);
  norm_backward(own(size_.tokens), module_.key_value_rank);
  const bool starts = lora() && !input_grad_;  // only pairs train: nothing below them
  const auto below = [&](const Linear& l) {
    starts ? low_rank_backward(l, false) : input_gradient(l);
  };
  below(key_down());
  if (module_.query_rank > 0) {
    input_gradient(query_up());
    sum(size_.tokens, module_.query_rank, true);
    norm_backward(own(size_.tokens), module_.query_rank);
    below(query_down());
  } else {
    below(query_up());
    if (!starts) sum(size_.tokens, hidden(), true);
  }
  if (!starts) passes(between_blocks(), 3, 1);  // both ways' gradients summed
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
  const std::int64_t tokens = bytes.size.tokens, own = bytes.own(tokens);
  const bool shares = bytes.context.sp && bytes.context.tp > 1,
             reads = bytes.trains() || bytes.adapts();
  const std::int64_t inputs =
      bytes.matrix_input() + bytes.low_rank(3) + bytes.low_rank_own(m.query_rank > 0 ? 2 : 1);
  if (!bytes.reaches_attention()) return inputs;
  // Rows that came together keep their padding.
  const std::int64_t all = shares ? RowShares{tokens, bytes.context.tp}.padded() : tokens;
  const std::int64_t joint = m.key_value_rank + m.rotary_dim;
  std::int64_t latents = bytes.element() * (own + all) * joint + bytes.wide() * own;
  if (m.query_rank > 0)
    latents += bytes.element() * (own + (reads ? all : 0)) * m.query_rank + bytes.wide() * own;
  else if (shares && reads)
    latents += bytes.element() * all * m.hidden;
  const std::int64_t of_heads = bytes.element() * tokens * (m.heads / bytes.context.tp) *
                                (2 * m.head_dim + m.rotary_dim + value_width(m));
  const bool selective = bytes.recompute == Recompute::selective;
  return inputs + latents + of_heads + (selective ? 0 : again_bytes(bytes));
}

}  // namespace polyphony
