#include "shared/layers/self_attention.h"

namespace polyphony {
namespace {

// Adds the fused qkv parameter, laid out per key/value head; `columns` 0: its bias.
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
  // RoPE on q and k in the plain form: rotate (negate and concatenate: 2 passes), two
  // multiplications (2 + 2) and their sum (3), in 5 launches each.
  if (is_own() || !rotates()) return;
  const int rotated = module_.rotary_dim > 0 ? module_.rotary_dim : module_.head_dim;
  passes(size_.tokens * (query_width() + key_width()) / module_.head_dim * rotated, 9, 10);
}

// Own form: copies queries and keys out of the fused qkv rows and rotates them. Values stay in the
// fused rows; so do queries that are not rotated and have a key head each.
void SelfAttention::split_heads() {
  if (!is_own()) return;
  if (rotates())
    passes(size_.tokens * (query_width() + key_width()), 2, 1);
  else if (query_width() > key_width())
    passes(size_.tokens * query_width(), 2, 1);
}

// Own form: rotates the gradients back and writes them into fused qkv rows.
void SelfAttention::join_heads() {
  if (is_own()) passes(size_.tokens * (query_width() + 2 * key_width()), 2, 1);
}

// One attention kernel per sequence (own form: one for all sequences), as packed sequences do not
// attend to each other.
void SelfAttention::attention(double flops_per_pair_and_width, int q_like, int k_like) {
  const double width = static_cast<double>(query_width());
  // If heads are exchanged: all pairs of the context group, for a share of the heads.
  const double pairs = exchanges() ? static_cast<double>(size_.gathered_pairs) / context_.cp
                                   : static_cast<double>(size_.pairs);
  const std::int64_t bytes =
      (query_rows() * q_like * query_width() + key_rows() * k_like * key_width()) * element();
  const int sequences = exchanges() ? size_.samples : size_.sequences;
  // Ring: one call per block of keys. Groups of heads: one call per group.
  const std::int64_t keys = exchanges() ? mean_keys(size_.gathered_pairs, size_.gathered)
                                        : mean_keys(size_.pairs, size_.tokens);
  const int blocks = rings() ? context_.cp : 1;
  add(KernelKind::attention, flops_per_pair_and_width * pairs * width, bytes,
      groups() * blocks * (is_own() ? 1 : std::max(1, sequences)), keys / blocks,
      flops_per_pair_and_width > 4 ? 2 : 1, module_.head_dim);
}

// Gathers keys and values of the context group, sample by sample.
void SelfAttention::gather_keys() {
  const std::int64_t width = 2 * key_width(), elements = size_.gathered * width;
  passes(size_.tokens * width, 2, 1);  // copied to contiguous rows
  if (keys_arrive_in_parts()) return;
  out_.collectives.push_back(
      {CollectiveKind::all_gather, Bytes(elements * element()), GroupKind::context});
  passes(elements, 2, 1);  // reordered
}

void SelfAttention::scatter_key_gradients() {
  const std::int64_t width = 2 * key_width(), elements = size_.gathered * width;
  passes(size_.tokens * width, 2, 1);  // copied to contiguous rows
  if (keys_arrive_in_parts()) return;
  out_.collectives.push_back(
      {CollectiveKind::reduce_scatter, Bytes(elements * element()), GroupKind::context});
  passes(elements, 2, 1);  // reordered
}

// Gathers the keys and values of one group of heads, or reduce-scatters their gradients.
void SelfAttention::group_collective(CollectiveKind kind, bool beside_attention) {
  const std::int64_t elements = size_.gathered * 2 * key_width() / groups();
  out_.collectives.push_back(
      {kind, Bytes(elements * element()), GroupKind::context, beside_attention});
  passes(elements, 2, 1);  // reordered
}

void SelfAttention::gather_groups() {
  for (int group = 0; group < groups() && groups() > 1; ++group)
    group_collective(CollectiveKind::all_gather, group > 0);
}

// During attention to one group, first the next group is gathered, then the gradients of the
// previous group are reduce-scattered.
void SelfAttention::gather_and_scatter_groups() {
  if (groups() == 1) return;
  group_collective(CollectiveKind::all_gather, false);
  for (int group = 0; group < groups(); ++group) {
    if (group + 1 < groups()) group_collective(CollectiveKind::all_gather, true);
    if (group > 0) group_collective(CollectiveKind::reduce_scatter, true);
  }
  group_collective(CollectiveKind::reduce_scatter, false);
}

void SelfAttention::join_groups(std::int64_t width) {
  if (groups() > 1) passes(size_.tokens * width, 2, 1);
}

// Ring: every rank's keys and values, or their gradients, pass through this rank. This moves as
// many bytes as an all-gather.
void SelfAttention::ring_pass(std::int64_t each) {
  if (rings())
    out_.collectives.push_back({CollectiveKind::all_gather,
                                Bytes(size_.gathered * 2 * key_width() * each), GroupKind::context,
                                true});
}

// Ring: the result of each block after the first is merged into the result so far.
void SelfAttention::merge_blocks(std::int64_t elements, std::int64_t each) {
  if (rings())
    add(KernelKind::elementwise, 0, (context_.cp - 1) * elements * 3 * each, context_.cp - 1);
}

void SelfAttention::exchange_heads(std::int64_t width) {
  const std::int64_t moved = size_.gathered * (width / context_.cp);
  passes(size_.tokens * width, 2, 1);  // grouped by the rank that sends or receives it
  out_.collectives.push_back(
      {CollectiveKind::all_to_all, Bytes(moved * element()), GroupKind::context});
  passes(moved, 2, 1);  // reordered
}

void SelfAttention::head_norm() {
  if (!module_.qk_norm) return;
  if (is_own()) return passes(size_.tokens * (query_width() + 2 * key_width()), 2, 1);
  // Passes: copy all (2); for q and k mean of squares (1), scaling (2), multiplication by the
  // weight (2), copy into place (2).
  passes(size_.tokens * (query_width() + 2 * key_width()), 2, 1);
  passes(size_.tokens * (query_width() + key_width()), 7, 4);
}

void SelfAttention::head_norm_backward() {
  if (!module_.qk_norm) return;
  if (is_own()) {
    passes(size_.tokens * (query_width() + 2 * key_width()), 3, 1);
    if (norms_train()) more_launches(1);  // as for other norms
    return;
  }
  // Passes: dy∘w (2), its projection on x (3 + 1), scaling (2), subtraction of the projection (3),
  // copy into place (2); then copy all.
  passes(size_.tokens * (query_width() + key_width()), 13, 6);
  passes(size_.tokens * (query_width() + 2 * key_width()), 2, 1);
  // Weight gradients of q_norm and k_norm: dy∘x (3), scaling (2), sum (1).
  if (norms_train()) passes(size_.tokens * (query_width() + key_width()), 6, 7);
}

void SelfAttention::recompute_attention() {
  if (!context()) rotate(), split_heads();
  ring_pass(element());
  gather_groups();
  attention(4, 2, 2);  // reads q, k, v; writes the output
  merge_blocks(size_.tokens * query_width(), wide_element());
  join_groups(query_width());
}

void SelfAttention::forward() {
  forward_column(qkv());
  head_norm();
  if (context()) rotate(), split_heads();
  if (exchanges()) {
    passes(size_.tokens * (query_width() + 2 * key_width()), 2, 1);  // copied to contiguous rows
    exchange_heads(query_width() + 2 * key_width());
  } else if (context()) {
    gather_keys();
  }
  recompute_attention();
  if (exchanges()) exchange_heads(query_width());
  if (module_.attention_gate)
    passes(size_.tokens * query_width(), 5, 2);  // sigmoid (2), multiplication (3)
  forward_row(out());
}

void SelfAttention::backward_input(bool again) {
  input_gradient_row(out());
  // Recomputed after the output matrix's gradient, whose gather comes first.
  if (again) recompute_attention();
  // Gradient of the output (3); of the gate: dy∘output (3), sigmoid backward (3).
  if (module_.attention_gate) passes(size_.tokens * query_width(), 9, 3);
  if (exchanges()) exchange_heads(query_width());
  ring_pass(element());
  ring_pass(wide_element());
  gather_and_scatter_groups();
  if (!context()) split_heads();
  attention(8, 4, 4);  // reads q, k, v, output, its gradient; writes three gradients
  merge_blocks(size_.tokens * query_width(), wide_element());
  merge_blocks(size_.tokens * 2 * key_width(), wide_element());
  join_groups(query_width() + 2 * key_width());
  if (exchanges()) {
    exchange_heads(query_width() + 2 * key_width());
    passes(size_.tokens * (query_width() + 2 * key_width()), 2, 1);  // copied back to heads
  } else if (context()) {
    scatter_key_gradients();
  }
  rotate();
  join_heads();
  head_norm_backward();
  if (lora() && !input_grad_) {  // first block of a LoRA module: nothing before its pairs trains
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
         " key/value heads of a tensor-parallel rank, as cp_attention ulysses requires; use a cp "
         "that "
         "divides them, a smaller tp, or another cp_attention";
}

}  // namespace polyphony
