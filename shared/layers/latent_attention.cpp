#include "shared/layers/latent_attention.h"

namespace polyphony {

void LatentAttention::parameters(LayerParameters& add) {
  const Module& m = add.module();
  const std::int64_t heads = m.heads, key_width = m.head_dim + m.rotary_dim;
  if (m.query_rank > 0) {
    // kv_down has the same input and counts it.
    add.adapted("q_down", m.query_rank, m.hidden, Cut::replicated, false, Rows::own);
    add.last().input = Input::others;
    add.norm("q_down_norm", m.query_rank, false);
    add.adapted("q_up", heads * key_width, m.query_rank, Cut::rows, false);
    add.last().input = Input::whole;
  } else {
    add.adapted("q_up", heads * key_width, m.hidden, Cut::rows, false);
    add.last().input = Input::others_unless_gathered;
  }
  const std::int64_t joint = m.key_value_rank + m.rotary_dim;
  add.adapted("kv_down", joint, m.hidden, Cut::replicated, false, Rows::own);
  add.last().input = Input::whole;
  add.norm("kv_down_norm", m.key_value_rank, false);
  add.last().held_width = static_cast<int>(joint);
  // Laid out per head as [k | v].
  add.adapted("kv_up", heads * (m.head_dim + value_width(m)), m.key_value_rank, Cut::rows, false);
  add.last().input = Input::whole;
  add.last().held_width = static_cast<int>(joint);
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

// Rotates the last R numbers of the queries and of the shared key (9 passes, as in self-attention),
// then concatenates both parts of the heads of q and k (2 launches).
void LatentAttention::rotate() {
  passes(size_.tokens * (heads() + 1) * module_.rotary_dim, 9, 10);
  passes(size_.tokens * heads() * key_width(), 4, 2);
}

// `products`: flops per pair and number, 2 forward and 4 backward.
void LatentAttention::attention(double products) {
  const std::int64_t wide = key_width(), narrow = value_width(module_);
  const double flops = products * static_cast<double>(size_.pairs) * static_cast<double>(heads()) *
                       static_cast<double>(wide + narrow);
  // Forward: q, k, v and the output. Backward: these, the output's gradient, and three gradients.
  const std::int64_t moved = products > 2 ? 4 * wide + 4 * narrow : 2 * wide + 2 * narrow;
  add(KernelKind::attention, flops, size_.tokens * heads() * moved * element(),
      std::max(1, size_.sequences), mean_keys(size_.pairs, size_.tokens), products > 2 ? 2 : 1,
      (wide + narrow) / 2);
}

void LatentAttention::recompute_attention() {
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
  if (module_.score_factor != 1) passes(size_.tokens * heads() * key_width(), 2, 1);
  forward_cut(key_down());
  norm(own(size_.tokens), module_.key_value_rank);
  if (sequence()) gather(size_.tokens, latent());
  forward_cut(key_up());
  recompute_attention();
  forward_row(out());
}

void LatentAttention::backward_input(bool again) {
  if (again) recompute_attention();
  const bool starts = lora() && !input_grad_;  // only LoRA pairs train, and nothing before them
  const auto below = [&](const Linear& l) {
    starts ? low_rank_backward(l, false) : input_gradient(l);
  };
  input_gradient_row(out());
  attention(4);
  rotate();
  input_gradient(key_up());
  sum(size_.tokens, latent());
  norm_backward(own(size_.tokens), module_.key_value_rank);
  below(key_down());
  if (module_.score_factor != 1) passes(size_.tokens * heads() * key_width(), 2, 1);
  if (module_.query_rank > 0) {
    input_gradient(query_up());
    sum(size_.tokens, module_.query_rank);
    norm_backward(own(size_.tokens), module_.query_rank);
    below(query_down());
  } else {
    below(query_up());
    if (!starts) sum(size_.tokens, hidden());
  }
  if (!starts) passes(between_blocks(), 3, 1);  // gradients of both down matrices summed
}

void LatentAttention::backward_weight() {
  weight_gradient(out());
  weight_gradient(key_up());
  weight_gradient(key_down());
  weight_gradient(query_up());
  if (module_.query_rank > 0) weight_gradient(query_down());
}

std::string LatentAttention::refused(const Module&, const ModuleLayout& layout) {
  if (layout.cp == 1) return "";
  return "cp " + std::to_string(layout.cp) +
         " is not supported with latent attention: every rank of a context group would have to "
         "expand the gathered latents to keys and values again; use cp 1, or a larger tp";
}

std::int64_t LatentAttention::recomputed_bytes(const LayerBytes& bytes) {
  const std::int64_t heads = bytes.module.heads / bytes.context.tp;
  return bytes.size.tokens * heads * (bytes.element() * value_width(bytes.module) + bytes.wide());
}

std::int64_t LatentAttention::tape(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  const RankContext& context = bytes.context;
  const std::int64_t tokens = bytes.size.tokens, own = bytes.own(tokens), e = bytes.element();
  const std::int64_t pair_rows = (m.query_rank > 0 ? 2 : 1) * own + 3 * tokens;
  std::int64_t kept = bytes.matrix_input() + (bytes.adapts() ? e * pair_rows * m.lora_rank : 0);
  if (!bytes.reaches_attention()) return kept;
  const std::int64_t all = context.sp ? RowShares{tokens, context.tp}.padded() : tokens;
  const bool inputs = bytes.trains() || bytes.adapts();
  kept += e * (own + all) * (m.key_value_rank + m.rotary_dim) + bytes.wide() * own;
  if (m.query_rank > 0)
    kept += e * (own + (inputs ? all : 0)) * m.query_rank + bytes.wide() * own;
  else if (context.sp && context.tp > 1 && inputs)
    kept += e * all * m.hidden;
  const std::int64_t of_head = 2 * m.head_dim + m.rotary_dim + value_width(m);
  kept += e * tokens * (m.heads / context.tp) * of_head;
  return kept + (bytes.recompute == Recompute::selective ? 0 : recomputed_bytes(bytes));
}

}  // namespace polyphony
