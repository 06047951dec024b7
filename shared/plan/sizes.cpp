#include "shared/plan/sizes.h"

#include <algorithm>

#include "shared/parameters.h"
#include "shared/row_shares.h"

namespace polyphony {
namespace {

constexpr std::int64_t kIndex = 8;  // bytes of an int64

// (token, choice) pairs that a rank routes: of all rows, or with uncut experts of its own.
std::int64_t expert_slots(const Module& module, const WorkSize& size, const ChunkContext& context) {
  const bool own = context.sp && context.expert_tp < context.tp;
  return module.experts_per_token *
         (own ? RowShares{size.tokens, context.tp}.share() : size.tokens);
}

// A block's feed-forward part without its input: dense, or experts, evenly loaded.
std::int64_t feed_forward_bytes(const Module& module, const WorkSize& size,
                                const ChunkContext& context) {
  const std::int64_t element = size_of(context.precision).value;
  if (module.experts == 0)
    return element * size.tokens * (module.gated ? 3 : 2) * std::int64_t{module.ffn} / context.tp;
  const std::int64_t wide = std::max<std::int64_t>(4, element);
  const std::int64_t own = context.sp ? RowShares{size.tokens, context.tp}.share() : size.tokens;
  const std::int64_t per_slot =
      element * (2 * std::int64_t{module.hidden} + 3 * module.expert_ffn / context.expert_tp) +
      wide + (context.ep > 1 ? 6 : 4) * kIndex;
  const std::int64_t balance = module.balance_weight > 0 ? wide * own * module.experts : 0;
  return expert_slots(module, size, context) * per_slot + balance +
         element * size.tokens * 3 * std::int64_t{module.shared_ffn} / context.tp;
}

// Rows that a matrix is multiplied with.
std::int64_t weight_rows(const Module& module, const Parameter& parameter, const WorkSize& size) {
  const auto is = [&](const char* part) { return parameter.name.find(part) != std::string::npos; };
  if (module.kind != ModuleKind::diffusion) return is(".head.") ? size.loss_tokens : size.tokens;
  if (is(".time_")) return size.sequences;
  return is(".cross_key_value.") ? size.condition : size.tokens;
}

}  // namespace

Bytes tape_bytes(const Module& module, LayerRange range, const WorkSize& size,
                 const ChunkContext& context) {
  const int tp = context.tp;
  const std::vector<LayerKind> stack = layers(module);
  const std::int64_t element = size_of(context.precision).value;
  const std::int64_t tokens = size.tokens, hidden = module.hidden;
  const auto own_rows = [&](std::int64_t rows) {
    return context.sp ? RowShares{rows, tp}.share() : rows;
  };
  const std::int64_t own = own_rows(tokens);
  const bool diffusion = module.kind == ModuleKind::diffusion;
  if (context.recompute == Recompute::full) {
    const bool projector = module.kind == ModuleKind::projector;
    std::int64_t kept = element * own * (projector ? module.projector_in : hidden);
    if (diffusion)  // a chunk that begins at the data has no other input
      kept = (range.begin > 0 ? kept : 0) + element * own_rows(size.condition) * module.condition;
    for (int layer = range.begin; layer < range.end; ++layer)
      if (stack[static_cast<std::size_t>(layer)] == LayerKind::decoder_block)
        kept += kIndex * expert_slots(module, size, context);
    return Bytes(kept);
  }
  const std::int64_t kv_heads = std::max(1, module.kv_heads / tp);
  const std::int64_t width = std::int64_t{module.heads} * module.head_dim / tp;
  const std::int64_t key_value = kv_heads * module.head_dim;
  // Context parallelism keeps the keys and values that it gathers.
  const bool gathers = context.cp > 1 && module.kind == ModuleKind::language;
  const std::int64_t key_rows = gathers ? size.gathered : tokens;
  const bool lora = module.trainable == Trainable::lora;
  const std::int64_t low_rank = lora ? 4 * std::int64_t{module.lora_rank} : 0;
  std::int64_t bytes = diffusion ? element * size.condition * module.condition : 0;
  for (int layer = range.begin; layer < range.end; ++layer) {
    const LayerKind kind = stack[static_cast<std::size_t>(layer)];
    switch (kind) {
      case LayerKind::latent_embedding:
      case LayerKind::diffusion_head:
        bytes += diffusion_bytes(module, kind, size, context);
        break;
      case LayerKind::patch_embedding:
        if (!lora) bytes += element * own * module.channels * module.patch * module.patch;
        break;
      case LayerKind::diffusion_block:
        bytes += diffusion_bytes(module, kind, size, context);
        [[fallthrough]];
      case LayerKind::encoder_block:
      case LayerKind::decoder_block:
        bytes += element * (own * 4 * hidden + tokens * (2 * width + low_rank) +
                            key_rows * 2 * key_value) +
                 4 * tokens * module.heads / tp + feed_forward_bytes(module, size, context);
        break;
      case LayerKind::encoder_norm:
        bytes += element * own * hidden;
        break;
      case LayerKind::projector_mlp: {
        // fc1's input, by the rows that come in: merge² of them make one.
        const std::int64_t merged = std::int64_t{module.merge} * module.merge;
        bytes += element * (own_rows(tokens * merged) * (module.projector_in / merged) +
                            tokens * 2 * module.projector_hidden / tp);
        break;
      }
      case LayerKind::token_embedding:
        break;
      case LayerKind::language_head:
        bytes += element * (own_rows(size.loss_tokens) * (lora ? 1 : 2) * hidden +
                            size.loss_tokens * ((module.vocab + tp - 1) / tp));
        break;
    }
  }
  return Bytes(bytes);
}

std::int64_t rows_leaving(const Module& /*module*/, int /*end*/, const WorkSize& size) {
  return size.tokens;
}

std::int64_t local_parameters(const Module& module, LayerRange range, const ShardIndex& shard) {
  std::int64_t total = 0;
  for (const Parameter& parameter : parameters(module, range))
    total += parameter.local_count(shard);
  return total;
}

Bytes workspace_bytes(const Module& module, LayerRange range, const WorkSize& size,
                      const ChunkContext& context) {
  if (context.recompute != Recompute::full) return {};
  ChunkContext kept = context;
  kept.recompute = Recompute::none;
  return tape_bytes(module, range, size, kept);
}

Bytes held_for_weights(const Module& module, LayerRange range, const WorkSize& size,
                       const ChunkContext& context) {
  const std::int64_t element = size_of(context.precision).value;
  std::int64_t elements = 0;
  for (const Parameter& parameter : parameters(module, range)) {
    if (!parameter.trained || parameter.shape.size() < 2) continue;
    const std::int64_t rows = weight_rows(module, parameter, size);
    if (parameter.expert) {
      const std::vector<std::int64_t> local = parameter.local_shape({.tensor = context.expert_tp});
      elements += expert_slots(module, size, context) * (local[1] + local[2]);
      continue;
    }
    const std::vector<std::int64_t> local = parameter.local_shape({.tensor = context.tp});
    elements += rows * (local[0] + local[1]);
  }
  return Bytes(elements * element);
}

}  // namespace polyphony
