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

// Keys and values: of all contexts, where they are gathered.
bool gathers_keys(const Module& module, const ChunkContext& context) {
  return context.cp > 1 && module.kind == ModuleKind::language;
}
std::int64_t key_bytes(const Module& module, const WorkSize& size, const ChunkContext& context) {
  const std::int64_t heads = std::max(1, module.kv_heads / context.tp);
  return size_of(context.precision).value * 2 * heads * module.head_dim *
         (gathers_keys(module, context) ? size.gathered : size.tokens);
}
std::int64_t query_bytes(const Module& module, const WorkSize& size, const ChunkContext& context) {
  return size_of(context.precision).value * size.tokens * module.heads * module.head_dim /
         context.tp;
}
// What attention makes of them: its output and log-sum-exp.
std::int64_t core_bytes(const Module& module, const WorkSize& size, const ChunkContext& context) {
  return query_bytes(module, size, context) + 4 * size.tokens * module.heads / context.tp;
}

// q, k and v before the norms of heads, and their scales.
std::int64_t head_norm_bytes(const Module& module, const WorkSize& size,
                             const ChunkContext& context) {
  const std::int64_t element = size_of(context.precision).value;
  const std::int64_t heads = module.heads / context.tp,
                     kv_heads = std::max(1, module.kv_heads / context.tp);
  return size.tokens * (element * (heads + 2 * kv_heads) * module.head_dim +
                        std::max<std::int64_t>(4, element) * (heads + kv_heads));
}

std::int64_t block_bytes(const Module& module, LayerKind kind, const WorkSize& size,
                         const ChunkContext& context, Recompute recompute) {
  const std::int64_t element = size_of(context.precision).value;
  const std::int64_t own = context.sp ? RowShares{size.tokens, context.tp}.share() : size.tokens;
  const std::int64_t input = element * own * module.hidden;
  if (recompute == Recompute::full) {
    const bool chooses = kind == LayerKind::decoder_block;
    return input + (chooses ? kIndex * expert_slots(module, size, context) : 0);
  }
  const bool lora = module.trainable == Trainable::lora;
  const std::int64_t low_rank = lora ? 4 * std::int64_t{module.lora_rank} : 0;
  std::int64_t bytes = 4 * input + element * size.tokens * low_rank +
                       query_bytes(module, size, context) + key_bytes(module, size, context) +
                       feed_forward_bytes(module, size, context);
  if (kind == LayerKind::diffusion_block) bytes += diffusion_bytes(module, kind, size, context);
  if (module.qk_norm) bytes += head_norm_bytes(module, size, context);
  return recompute == Recompute::selective ? bytes : bytes + core_bytes(module, size, context);
}

// Rows that a matrix is multiplied with.
std::int64_t weight_rows(const Module& module, const Parameter& parameter, const WorkSize& size) {
  const auto is = [&](const char* part) { return parameter.name.find(part) != std::string::npos; };
  if (module.kind != ModuleKind::diffusion)
    return parameter.copy || is(".head.") ? size.loss_tokens : size.tokens;
  if (is(".time_")) return size.sequences;
  return is(".cross_key_value.") ? size.condition : size.tokens;
}

}  // namespace

Bytes tape_bytes(const Module& module, LayerRange range, const WorkSize& size,
                 const ChunkContext& context) {
  const int tp = context.tp;
  const std::vector<LayerKind> stack = layers(module);
  const std::int64_t element = size_of(context.precision).value;
  const std::int64_t hidden = module.hidden;
  const auto own_rows = [&](std::int64_t rows) {
    return context.sp ? RowShares{rows, tp}.share() : rows;
  };
  const bool lora = module.trainable == Trainable::lora;
  std::int64_t bytes =
      module.kind == ModuleKind::diffusion ? element * size.condition * module.condition : 0;
  for (int layer = range.begin; layer < range.end; ++layer) {
    const WorkSize inside = layer_size(module, layer, size);
    const std::int64_t tokens = inside.tokens, own = own_rows(tokens);
    const LayerKind kind = stack[static_cast<std::size_t>(layer)];
    switch (kind) {
      case LayerKind::latent_embedding:
      case LayerKind::diffusion_head:
        bytes += diffusion_bytes(module, kind, size, context);
        break;
      case LayerKind::audio_embedding:
        if (!lora) bytes += element * own * 6 * (module.mel_bins + hidden);
        break;
      case LayerKind::patch_embedding:
        if (!lora) bytes += element * own * module.channels * module.patch * module.patch;
        break;
      case LayerKind::diffusion_block:
      case LayerKind::encoder_block:
      case LayerKind::decoder_block:
        bytes += block_bytes(module, kind, inside, context,
                             recompute_of(kind, layer, context.recompute, context.recomputed));
        break;
      case LayerKind::encoder_norm:
        bytes += element * own * hidden;
        break;
      case LayerKind::projector_mlp: {
        // fc1's input, by the rows that come in: merge² of them (audio: merge) make one.
        const std::int64_t merged = merged_rows(module);
        bytes += element * (own_rows(tokens * merged) * (module.projector_in / merged) +
                            tokens * 2 * module.projector_hidden / tp);
        break;
      }
      case LayerKind::projector_linear:
        bytes += element * own * module.projector_in;
        break;
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

std::int64_t local_parameters(const Module& module, LayerRange range, const ShardIndex& shard) {
  std::int64_t total = 0;
  for (const Parameter& parameter : parameters(module, range))
    total += parameter.local_count(shard);
  return total;
}

Bytes workspace_bytes(const Module& module, LayerRange range, const WorkSize& size,
                      const ChunkContext& context) {
  const std::vector<LayerKind> stack = layers(module);
  std::int64_t most = 0;  // one block at a time
  for (int layer = range.begin; layer < range.end; ++layer) {
    const WorkSize inside = layer_size(module, layer, size);
    const LayerKind kind = stack[static_cast<std::size_t>(layer)];
    switch (recompute_of(kind, layer, context.recompute, context.recomputed)) {
      case Recompute::none:
        break;
      case Recompute::selective: {
        // Rotated copies of q, k and v; what context parallelism gathers is kept as it is.
        const std::int64_t copies =
            gathers_keys(module, context)
                ? 0
                : query_bytes(module, inside, context) + key_bytes(module, inside, context);
        most = std::max(most, core_bytes(module, inside, context) + copies);
        break;
      }
      case Recompute::full:
        most = std::max(most, block_bytes(module, kind, inside, context, Recompute::none) -
                                  block_bytes(module, kind, inside, context, Recompute::full));
        break;
    }
  }
  return Bytes(most);
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
