#include "shared/layers/self_attention.h"

namespace polyphony {
namespace {

bool uses(const LayerBytes& bytes, ContextAttention attention) {
  return bytes.context.cp > 1 && bytes.module.kind == ModuleKind::language &&
         bytes.context.cp_attention == attention;
}

bool by_groups(const LayerBytes& bytes) {
  return bytes.module.kind == ModuleKind::language && key_groups(bytes.module, bytes.context) > 1;
}

bool keys_come_by(const LayerBytes& bytes) {
  return uses(bytes, ContextAttention::ring) || by_groups(bytes);
}

// Of `heads` heads, of the rows that this rank has of them while it attends.
std::int64_t head_rows(const LayerBytes& bytes, std::int64_t heads) {
  return uses(bytes, ContextAttention::ulysses) ? bytes.size.gathered * (heads / bytes.context.cp)
                                                : bytes.size.tokens * heads;
}

// The output matrix's input.
std::int64_t output_bytes(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  return bytes.element() * bytes.size.tokens * (m.heads / bytes.context.tp) * m.head_dim;
}

std::int64_t query_bytes(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  return bytes.element() * head_rows(bytes, m.heads / bytes.context.tp) * m.head_dim;
}

// Keys and values: of all contexts, where they are gathered at once.
std::int64_t key_bytes(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  const std::int64_t heads = std::max(1, m.kv_heads / bytes.context.tp);
  const bool whole = uses(bytes, ContextAttention::all_gather) && !by_groups(bytes);
  return bytes.element() * 2 * m.head_dim *
         (whole ? bytes.size.gathered * heads : head_rows(bytes, heads));
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

std::int64_t SelfAttention::again_bytes(const LayerBytes& bytes) {
  return query_bytes(bytes) +
         bytes.wide() * head_rows(bytes, bytes.module.heads / bytes.context.tp);
}

std::int64_t SelfAttention::brought_bytes(const LayerBytes& bytes) {
  if (!bytes.reaches_attention()) return 0;
  const int ranks = bytes.context.cp;
  if (uses(bytes, ContextAttention::ring)) {  // the block at hand and the next, but for own rows
    const std::int64_t block = (bytes.size.gathered + ranks - 1) / ranks,
                       heads = std::max(1, bytes.module.kv_heads / bytes.context.tp);
    return bytes.element() * std::min(2, ranks - 1) * block * 2 * heads * bytes.module.head_dim;
  }
  if (!by_groups(bytes)) return 0;
  return bytes.element() * bytes.size.gathered * 4 * bytes.context.cp_heads * bytes.module.head_dim;
}

std::int64_t SelfAttention::tape(const LayerBytes& bytes) {
  const std::int64_t inputs = bytes.matrix_input() + bytes.low_rank(2);
  if (!bytes.reaches_attention()) return inputs;
  std::int64_t kept = query_bytes(bytes);
  const bool selective = bytes.recompute == Recompute::selective,
             exchanges = uses(bytes, ContextAttention::ulysses),
             wants = bytes.trains() || bytes.adapts();
  // Without tokens here nothing attends to what the context group gathers beforehand.
  if (bytes.size.tokens > 0 || selective || exchanges || keys_come_by(bytes)) {
    kept += key_bytes(bytes);
    if (bytes.module.attention_sinks)
      kept += bytes.wide() * (bytes.module.heads / bytes.context.tp);
  }
  if (bytes.module.qk_norm) kept += head_norm_bytes(bytes);
  if (bytes.module.attention_gate)
    kept += (wants && (!selective || exchanges) ? 2 : 1) * output_bytes(bytes);
  // Back from the other ranks, what attention gave is another array than what it keeps.
  if (exchanges && (wants || bytes.module.attention_gate)) kept += output_bytes(bytes);
  return inputs + kept + (selective ? 0 : again_bytes(bytes));
}

}  // namespace polyphony
