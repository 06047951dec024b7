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

}  // namespace

int key_groups(const Module& module, const ChunkContext& context) {
  return context.cp_heads == 0 ? 1 : module.kv_heads / context.tp / context.cp_heads;
}

int key_parts(const Module& module, const ChunkContext& context) {
  return context.cp_attention == ContextAttention::ring ? context.cp : key_groups(module, context);
}

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
  if (is_own() || !rotates()) return;
  const int turned = module_.rotary_dim > 0 ? module_.rotary_dim : module_.head_dim;
  passes(size_.tokens * (query_width() + key_width()) / module_.head_dim * turned, 9, 10);
}

// Own form: queries and keys turned, out of q, k and v side by side; values stay there, as do queries that do not action and
// have a key each.
void SelfAttention::split_heads() {
  if (!is_own()) return;
  if (rotates())
    passes(size_.tokens * (query_width() + key_width()), 2, 1);
  else if (query_width() > key_width())
    passes(size_.tokens * query_width(), 2, 1);
}

// Their gradients turned back, side by side.
void SelfAttention::join_heads() {
  if (is_own()) passes(size_.tokens * (query_width() + 2 * key_width()), 2, 1);
}

// One attention kernel per sequence, or for all of them in the own form: packed sequences do not see each other.
void SelfAttention::attention(double flops_per_pair_and_width, int q_like, int k_like) {
  const double width = static_cast<double>(query_width());
  // By heads: all pairs of the group, for a share of the heads.
  const double pairs = exchanges() ? static_cast<double>(size_.gathered_pairs) / context_.cp
                                   : static_cast<double>(size_.pairs);
  const std::int64_t bytes =
      (query_rows() * q_like * query_width() + key_rows() * k_like * key_width()) * element();
  const int sequences = exchanges() ? size_.samples : size_.sequences;
  // Passed round: every block of keys is a call of its own; by groups, some heads.
  const std::int64_t keys = exchanges() ? mean_keys(size_.gathered_pairs, size_.gathered)
                                        : mean_keys(size_.pairs, size_.tokens);
  const int blocks = rings() ? context_.cp : 1;
  add(KernelKind::attention, flops_per_pair_and_width * pairs * width, bytes,
      groups() * blocks * (is_own() ? 1 : std::max(1, sequences)), keys / blocks,
      flops_per_pair_and_width > 4 ? 2 : 1, module_.head_dim);
}

// Keys and values of the group's ranks, by sample.
void SelfAttention::bring_keys() {
  const std::int64_t width = 2 * key_width(), elements = size_.gathered * width;
  passes(size_.tokens * width, 2, 1);  // as rows
  if (comes_by()) return;
  out_.collectives.push_back(
      {CollectiveKind::all_gather, Bytes(elements * element()), GroupKind::context});
  passes(elements, 2, 1);  // brought into order
}

void SelfAttention::return_keys() {
  const std::int64_t width = 2 * key_width(), elements = size_.gathered * width;
  passes(size_.tokens * width, 2, 1);  // as rows
  if (comes_by()) return;
  out_.collectives.push_back(
      {CollectiveKind::reduce_scatter, Bytes(elements * element()), GroupKind::context});
  passes(elements, 2, 1);  // out of order
}

// Keys and values of some heads, or their gradients.
void SelfAttention::move_group(CollectiveKind kind, bool beside_attention) {
  const std::int64_t elements = size_.gathered * 2 * key_width() / groups();
  out_.collectives.push_back(
      {kind, Bytes(elements * element()), GroupKind::context, beside_attention});
  passes(elements, 2, 1);  // brought into order, or out of it
}

void SelfAttention::bring_groups() {
  for (int group = 0; group < groups() && groups() > 1; ++group)
    move_group(CollectiveKind::all_gather, group > 0);
}

// What is attended to next comes first, then the gradients of what was attended to leave.
void SelfAttention::bring_and_return_groups() {
  if (groups() == 1) return;
  move_group(CollectiveKind::all_gather, false);
  for (int group = 0; group < groups(); ++group) {
    if (group + 1 < groups()) move_group(CollectiveKind::all_gather, true);
    if (group > 0) move_group(CollectiveKind::reduce_scatter, true);
  }
  move_group(CollectiveKind::reduce_scatter, false);
}

void SelfAttention::join_groups(std::int64_t width) {
  if (groups() > 1) passes(size_.tokens * width, 2, 1);
}

// Every rank's keys and values come by, or their gradients with them: as many bytes as gathered.
void SelfAttention::pass_round(std::int64_t each) {
  if (rings())
    out_.collectives.push_back({CollectiveKind::all_gather,
                                Bytes(size_.gathered * 2 * key_width() * each), GroupKind::context,
                                true});
}

// What each block but the first gives is added to what those before it gave.
void SelfAttention::merge_blocks(std::int64_t elements, std::int64_t each) {
  if (rings())
    add(KernelKind::elementwise, 0, (context_.cp - 1) * elements * 3 * each, context_.cp - 1);
}

void SelfAttention::exchange_heads(std::int64_t width) {
  const std::int64_t moved = size_.gathered * (width / context_.cp);
  passes(size_.tokens * width, 2, 1);  // by the rank that it goes to, or came from
  out_.collectives.push_back(
      {CollectiveKind::all_to_all, Bytes(moved * element()), GroupKind::context});
  passes(moved, 2, 1);  // brought into order, or out of it
}

void SelfAttention::head_norm() {
  if (!module_.qk_norm) return;
  if (is_own()) return passes(size_.tokens * (query_width() + 2 * key_width()), 2, 1);
  // All copied (2); of q and k squares and their mean (1), scaled (2), times the weight (2), put in
  // place (2).
  passes(size_.tokens * (query_width() + 2 * key_width()), 2, 1);
  passes(size_.tokens * (query_width() + key_width()), 7, 4);
}

void SelfAttention::head_norm_backward() {
  if (!module_.qk_norm) return;
  if (is_own()) {
    passes(size_.tokens * (query_width() + 2 * key_width()), 3, 1);
    if (norms_train()) more_launches(1);  // as of other norms
    return;
  }
  // dy∘w (2), its part along x (3 + 1), scaled (2), less that part (3), put in place (2); all
  // copied.
  passes(size_.tokens * (query_width() + key_width()), 13, 6);
  passes(size_.tokens * (query_width() + 2 * key_width()), 2, 1);
  // Of the weights dy∘x (3), scaled (2), summed (1): by q and by k.
  if (norms_train()) passes(size_.tokens * (query_width() + key_width()), 6, 7);
}

void SelfAttention::again() {
  if (!context()) rotate(), split_heads();
  pass_round(element());
  bring_groups();
  attention(4, 2, 2);  // reads q, k, v; writes the output
  merge_blocks(size_.tokens * query_width(), wide_element());
  join_groups(query_width());
}

void SelfAttention::forward() {
  forward_column(qkv());
  head_norm();
  if (context()) rotate(), split_heads();
  if (exchanges()) {
    passes(size_.tokens * (query_width() + 2 * key_width()), 2, 1);  // as rows
    exchange_heads(query_width() + 2 * key_width());
  } else if (context()) {
    bring_keys();
  }
  again();
  if (exchanges()) exchange_heads(query_width());
  if (module_.attention_gate)
    passes(size_.tokens * query_width(), 5, 2);  // sigmoid (2), product (3)
  forward_row(out());
}

void SelfAttention::backward_input(bool again) {
  input_gradient_row(out());
  if (again) this->again();  // behind the output's gradient: a collective of its own comes first
  // Of the output (3); of the gate: dy∘output (3), through the sigmoid (3).
  if (module_.attention_gate) passes(size_.tokens * query_width(), 9, 3);
  if (exchanges()) exchange_heads(query_width());
  pass_round(element());
  pass_round(wide_element());
  bring_and_return_groups();
  if (!context()) split_heads();
  attention(8, 4, 4);  // reads q, k, v, output, its gradient; writes three gradients
  merge_blocks(size_.tokens * query_width(), wide_element());
  merge_blocks(size_.tokens * 2 * key_width(), wide_element());
  join_groups(query_width() + 2 * key_width());
  if (exchanges()) {
    exchange_heads(query_width() + 2 * key_width());
    passes(size_.tokens * (query_width() + 2 * key_width()), 2, 1);  // as heads
  } else if (context()) {
    return_keys();
  }
  rotate();
  join_heads();
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
  if (is_own() && module_.qk_norm && norms_train()) more_launches(2);
}

std::string SelfAttention::refused(const Module& module, const ModuleLayout& layout) {
  const int heads = std::max(1, module.kv_heads / layout.tp);
  if (module.kind != ModuleKind::language || layout.cp == 1 || heads % layout.cp == 0 ||
      layout.cp_attention != ContextAttention::ulysses)
    return "";
  return "cp " + std::to_string(layout.cp) + " does not divide the " + std::to_string(heads) +
         " key/value heads of a tensor-parallel rank, which cp_attention ulysses exchanges; use a "
         "cp that does, less tp, or another cp_attention";
}

}  // namespace polyphony
