#include "shared/layers/self_attention.h"

namespace polyphony {
namespace {

// Rows laid out per key/value head; `columns` 0: a bias.
void fused(LayerParameters& add, const std::string& suffix, std::int64_t columns) {
  const Module& m = add.module();
  const int queries = (m.attention_gate ? 2 : 1) * m.heads;
  const std::int64_t rows = (std::int64_t{queries} + 2 * m.kv_heads) * m.head_dim;
  Parameter& parameter = columns > 0 ? add.matrix(suffix, rows, columns, Cut::heads)
                                     : add.vector(suffix, rows, Cut::heads, Initial::zeros);
  parameter.adapted = columns > 0;
  parameter.key_value_heads = m.kv_heads;
  parameter.group_heads = queries / m.kv_heads;
  parameter.head_dim = m.head_dim;
}

std::int64_t query_bytes(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  return bytes.element() * bytes.size.tokens * (m.heads / bytes.context.tp) * m.head_dim;
}

// Keys and values: of all contexts, where they are gathered.
std::int64_t key_bytes(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  const bool gathers = bytes.context.cp > 1 && m.kind == ModuleKind::language;
  const std::int64_t heads = std::max(1, m.kv_heads / bytes.context.tp);
  return bytes.element() * 2 * heads * m.head_dim *
         (gathers ? bytes.size.gathered : bytes.size.tokens);
}

// q, k and v before the norms of heads, and their scales.
std::int64_t head_norm_bytes(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  const std::int64_t heads = m.heads / bytes.context.tp,
                     keys = std::max(1, m.kv_heads / bytes.context.tp);
  return bytes.size.tokens *
         (bytes.element() * (heads + 2 * keys) * m.head_dim + bytes.wide() * (heads + keys));
}

}  // namespace

void SelfAttention::parameters(LayerParameters& add) {
  const Module& m = add.module();
  const bool biased = m.attention_bias || m.kind == ModuleKind::diffusion;
  fused(add, "qkv.weight", m.hidden);
  if (biased || m.qkv_bias) fused(add, "qkv.bias", 0);
  if (m.qk_norm) {
    add.head_norm("q_norm", m.head_dim).role = Role::head_norms;
    add.head_norm("k_norm", m.head_dim);
  }
  if (m.attention_sinks)
    add.vector("sinks.weight", m.heads, Cut::rows, Initial::zeros).role = Role::itself;
  add.attention_out(std::int64_t{m.heads} * m.head_dim, biased);
}

void SelfAttention::rotate() {
  // RoPE on q and k: rotate (negate and join: 2), two products (2 + 2) and their sum (3): 5
  // launches each.
  if (!rotates()) return;
  const int turned = module_.rotary_dim > 0 ? module_.rotary_dim : module_.head_dim;
  passes(size_.tokens * (query_width() + key_width()) / module_.head_dim * turned, 9, 10);
}

// One attention kernel per sequence: packed sequences do not see each other.
void SelfAttention::attention(double flops_per_pair_and_width, int q_like, int k_like) {
  const double width = static_cast<double>(query_width());
  const double flops = flops_per_pair_and_width * static_cast<double>(size_.pairs) * width;
  const std::int64_t bytes =
      (size_.tokens * q_like * query_width() + key_rows() * k_like * key_width()) * element();
  add(KernelKind::attention, flops, bytes, std::max(1, size_.sequences),
      mean_keys(size_.pairs, size_.tokens), flops_per_pair_and_width > 4 ? 2 : 1, module_.head_dim);
}

// Keys and values of the group's ranks, by sample.
void SelfAttention::move_keys(CollectiveKind kind) {
  if (!context()) return;
  const std::int64_t width = 2 * key_width();
  passes(size_.tokens * width, 2, 1);  // as rows, or back
  out_.collectives.push_back({kind, Bytes(size_.gathered * width * element()), GroupKind::context});
  passes(size_.gathered * width, 2, 1);  // brought into order, or back
}

void SelfAttention::head_norm() {
  if (!module_.qk_norm) return;
  // All copied (2); of q and k squares and their mean (1), scaled (2), times the weight (2), put in
  // place (2).
  passes(size_.tokens * (query_width() + 2 * key_width()), 2, 1);
  passes(size_.tokens * (query_width() + key_width()), 7, 4);
}

void SelfAttention::head_norm_backward() {
  if (!module_.qk_norm) return;
  // dy∘w (2), its part along x (3 + 1), scaled (2), less that part (3), put in place (2); all
  // copied.
  passes(size_.tokens * (query_width() + key_width()), 13, 6);
  passes(size_.tokens * (query_width() + 2 * key_width()), 2, 1);
  // Of the weights dy∘x (3), scaled (2), summed (1): by q and by k.
  if (norms_train()) passes(size_.tokens * (query_width() + key_width()), 6, 7);
}

void SelfAttention::again() {
  if (!context()) rotate();
  attention(4, 2, 2);  // reads q, k, v; writes the output
}

void SelfAttention::forward() {
  forward_column(qkv());
  head_norm();
  if (context()) {
    rotate();
    move_keys(CollectiveKind::all_gather);
  }
  again();
  if (module_.attention_gate)
    passes(size_.tokens * query_width(), 5, 2);  // sigmoid (2), product (3)
  forward_row(out());
}

void SelfAttention::backward_input() {
  input_gradient_row(out());
  // Of the output (3); of the gate: dy∘output (3), through the sigmoid (3).
  if (module_.attention_gate) passes(size_.tokens * query_width(), 9, 3);
  attention(8, 4, 4);  // reads q, k, v, output, its gradient; writes three gradients
  move_keys(CollectiveKind::reduce_scatter);
  rotate();
  head_norm_backward();
  if (lora() && !input_grad_) {  // a LoRA module's first block: only its pairs train
    if (sequence()) gather(size_.tokens, hidden());
    return low_rank_backward(qkv(), false);
  }
  input_gradient_column(qkv());
}

void SelfAttention::backward_weight() {
  weight_gradient(out());
  weight_gradient(qkv());
}

std::int64_t SelfAttention::again_bytes(const LayerBytes& bytes) {
  return query_bytes(bytes) +
         bytes.wide() * bytes.size.tokens * (bytes.module.heads / bytes.context.tp);
}

std::int64_t SelfAttention::tape(const LayerBytes& bytes) {
  const std::int64_t inputs = bytes.matrix_input() + bytes.low_rank(2);
  if (!bytes.reaches_attention()) return inputs;
  std::int64_t kept = query_bytes(bytes);
  // Without tokens here nothing attends to what the context group gathers.
  const bool selective = bytes.recompute == Recompute::selective;
  if (bytes.size.tokens > 0 || selective) {
    kept += key_bytes(bytes);
    if (bytes.module.attention_sinks)
      kept += bytes.wide() * (bytes.module.heads / bytes.context.tp);
  }
  if (bytes.module.qk_norm) kept += head_norm_bytes(bytes);
  if (bytes.module.attention_gate)
    kept += ((bytes.trains() || bytes.adapts()) && !selective ? 2 : 1) * query_bytes(bytes);
  return inputs + kept + (selective ? 0 : again_bytes(bytes));
}

}  // namespace polyphony
