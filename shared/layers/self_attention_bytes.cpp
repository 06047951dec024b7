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

bool gets_keys_in_parts(const LayerBytes& bytes) {
  return uses(bytes, ContextAttention::ring) || by_groups(bytes);
}

// Rows times heads that this rank has during attention, for `heads` heads of a tensor-parallel
// rank.
std::int64_t head_rows(const LayerBytes& bytes, std::int64_t heads) {
  return uses(bytes, ContextAttention::ulysses) ? bytes.size.gathered * (heads / bytes.context.cp)
                                                : bytes.size.tokens * heads;
}

// Bytes of the input of the output matrix.
std::int64_t output_bytes(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  return bytes.element() * bytes.size.tokens * (m.heads / bytes.context.tp) * m.head_dim;
}

std::int64_t query_bytes(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  return bytes.element() * head_rows(bytes, m.heads / bytes.context.tp) * m.head_dim;
}

// Bytes of keys and values; those of the whole context group, if they are gathered at once.
std::int64_t key_bytes(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  const std::int64_t heads = std::max(1, m.kv_heads / bytes.context.tp);
  const bool whole = uses(bytes, ContextAttention::all_gather) && !by_groups(bytes);
  return bytes.element() * 2 * m.head_dim *
         (whole ? bytes.size.gathered * heads : head_rows(bytes, heads));
}

// Bytes of q, k and v before the head norms, and of the norms' scales.
std::int64_t head_norm_bytes(const LayerBytes& bytes) {
  const Module& m = bytes.module;
  const std::int64_t heads = m.heads / bytes.context.tp,
                     keys = std::max(1, m.kv_heads / bytes.context.tp);
  return bytes.size.tokens *
         (bytes.element() * (heads + 2 * keys) * m.head_dim + bytes.wide() * (heads + keys));
}

}  // namespace

std::int64_t SelfAttention::recomputed_bytes(const LayerBytes& bytes) {
  return query_bytes(bytes) +
         bytes.wide() * head_rows(bytes, bytes.module.heads / bytes.context.tp);
}

std::int64_t SelfAttention::received_again_bytes(const LayerBytes& bytes) {
  if (!bytes.reaches_attention()) return 0;
  const int ranks = bytes.context.cp;
  if (uses(bytes, ContextAttention::ring)) {  // the current and the next block, unless own rows
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
  // If this rank has no tokens, it does not keep the keys that its context group gathers.
  if (bytes.size.tokens > 0 || selective || exchanges || gets_keys_in_parts(bytes)) {
    kept += key_bytes(bytes);
    if (bytes.module.attention_sinks)
      kept += bytes.wide() * (bytes.module.heads / bytes.context.tp);
  }
  if (bytes.module.qk_norm) kept += head_norm_bytes(bytes);
  if (bytes.module.attention_gate)
    kept += (wants && (!selective || exchanges) ? 2 : 1) * output_bytes(bytes);
  // After the exchange, the output for own rows is a different array from the one attention saves.
  if (exchanges && (wants || bytes.module.attention_gate)) kept += output_bytes(bytes);
  return inputs + kept + (selective ? 0 : recomputed_bytes(bytes));
}

}  // namespace polyphony
