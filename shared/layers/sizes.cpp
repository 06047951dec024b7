#include "shared/layers/sizes.h"

#include <algorithm>

#include "shared/layers/parameters.h"
#include "shared/layers/row_shares.h"

namespace polyphony {
namespace {

constexpr std::int64_t kIndex = 8;  // bytes of an int64

// What is fp32 at least, in any format: statistics, log-sum-exps, router logits, probabilities.
std::int64_t wide_element(const RankContext& context) {
  return std::max<std::int64_t>(4, size_of(context.precision).value);
}
std::int64_t own_rows(std::int64_t rows, const RankContext& context) {
  return context.sp ? RowShares{rows, context.tp}.count(context.tensor_index) : rows;
}

// Which matrices keep their inputs: all of a module that trains; beside a low-rank pair; none.
bool trains(const Module& module) { return module.trainable == Trainable::full; }
bool adapts(const Module& module) { return module.trainable == Trainable::lora; }

// Nothing that needs a gradient enters a module's first block, whose norm trains nothing. A
// diffusion module's conditioning enters later.
bool starts_graph(const Module& module, LayerRange range, int layer, const RankContext& context) {
  const bool fed = module.kind == ModuleKind::diffusion ? range.begin > 0 : context.input_grad;
  return !trains(module) && layer == 1 && !fed;
}

// (token, choice) pairs that a rank routes: of all rows, or with uncut experts of its own.
std::int64_t expert_slots(const Module& module, const WorkSize& size, const RankContext& context) {
  const bool own = context.sp && context.expert_tp < context.tp;
  return module.experts_per_token * (own ? own_rows(size.tokens, context) : size.tokens);
}

// A feed-forward part of width F without its input.
std::int64_t dense_bytes(const Module& module, std::int64_t ffn, bool gated, const WorkSize& size,
                         const RankContext& context) {
  const int parts = (gated ? 2 : 1) + (trains(module) || adapts(module) ? 1 : 0);
  return size_of(context.precision).value * size.tokens * parts * (ffn / context.tp);
}

// A block's feed-forward part without its input: dense, or experts, evenly loaded.
std::int64_t feed_forward_bytes(const Module& module, const WorkSize& size,
                                const RankContext& context) {
  if (module.experts == 0) return dense_bytes(module, module.ffn, module.gated, size, context);
  const std::int64_t element = size_of(context.precision).value, wide = wide_element(context);
  const bool trained = trains(module);
  const std::int64_t rows = (trained ? 2 : 1) * std::int64_t{module.hidden};
  const std::int64_t inner = (trained ? 3 : 2) * std::int64_t{module.expert_ffn};
  const std::int64_t per_slot =
      element * (rows + inner / context.expert_tp) + wide + (context.ep > 1 ? 6 : 4) * kIndex;
  const std::int64_t balance =
      module.balance_weight > 0 ? wide * own_rows(size.tokens, context) * module.experts : 0;
  return expert_slots(module, size, context) * per_slot + balance +
         dense_bytes(module, module.shared_ffn, true, size, context);
}

// Keys and values: of all contexts, where they are gathered.
bool gathers_keys(const Module& module, const RankContext& context) {
  return context.cp > 1 && module.kind == ModuleKind::language;
}
std::int64_t key_bytes(const Module& module, const WorkSize& size, const RankContext& context) {
  const std::int64_t heads = std::max(1, module.kv_heads / context.tp);
  return size_of(context.precision).value * 2 * heads * module.head_dim *
         (gathers_keys(module, context) ? size.gathered : size.tokens);
}
std::int64_t query_bytes(const Module& module, const WorkSize& size, const RankContext& context) {
  return size_of(context.precision).value * size.tokens * (module.heads / context.tp) *
         module.head_dim;
}
// What attention makes of them: its output and log-sum-exp.
std::int64_t core_bytes(const Module& module, const WorkSize& size, const RankContext& context,
                        AttentionKind kind) {
  const std::int64_t element = size_of(context.precision).value;
  if (kind == AttentionKind::linear)  // the output matrix's input alone
    return trains(module) || adapts(module)
               ? element * size.tokens * (module.linear_value_heads / context.tp) *
                     module.linear_head_dim
               : 0;
  const std::int64_t width = kind == AttentionKind::latent ? value_width(module) : module.head_dim;
  return size.tokens * (module.heads / context.tp) * (element * width + wide_element(context));
}

// What the delta rule's matrix made.
std::int64_t linear_bytes(const Module& module, const WorkSize& size, const RankContext& context) {
  const std::int64_t keys = module.linear_key_heads, values = module.linear_value_heads;
  return size_of(context.precision).value * size.tokens *
         ((2 * (keys + values) * module.linear_head_dim + 2 * values) / context.tp);
}

// q, k and v before the norms of heads, and their scales.
std::int64_t head_norm_bytes(const Module& module, const WorkSize& size,
                             const RankContext& context) {
  const std::int64_t element = size_of(context.precision).value;
  const std::int64_t heads = module.heads / context.tp,
                     kv_heads = std::max(1, module.kv_heads / context.tp);
  return size.tokens * (element * (heads + 2 * kv_heads) * module.head_dim +
                        wide_element(context) * (heads + kv_heads));
}

// Inputs of low-rank pairs' second matrices.
std::int64_t low_rank_bytes(const Module& module, const WorkSize& size, const RankContext& context,
                            AttentionKind kind) {
  if (!adapts(module)) return 0;
  const int feed_forward = module.experts > 0 && module.shared_ffn == 0 ? 0 : 2;
  const std::int64_t attention = kind == AttentionKind::latent
                                     ? latent_pair_rows(module, size, context) + size.tokens
                                     : 2 * size.tokens;
  return size_of(context.precision).value * (attention + feed_forward * size.tokens) *
         module.lora_rank;
}

std::int64_t norm_statistics(const Module& module, std::int64_t rows, const RankContext& context) {
  const bool two = module.kind == ModuleKind::diffusion || module.norm == Norm::layer;
  return (two ? 2 : 1) * wide_element(context) * rows;
}

std::int64_t block_bytes(const Module& module, bool starts, LayerKind kind, int layer,
                         const WorkSize& size, const RankContext& context, Recompute recompute) {
  const AttentionKind attention = block_at(module, layer - 1).attention;
  const std::int64_t own = own_rows(size.tokens, context);
  const std::int64_t input = size_of(context.precision).value * own * module.hidden;
  if (recompute == Recompute::full) {
    const bool chooses = kind == LayerKind::decoder_block && module.experts > 0;
    return input + (chooses ? kIndex * expert_slots(module, size, context) : 0);
  }
  const std::int64_t normed = input + norm_statistics(module, own, context);
  const bool routes = module.experts > 0 && !trains(module) && module.shared_ffn == 0;
  const int inputs = trains(module) || adapts(module) ? (routes ? 1 : 2) : 0;  // of qkv and fc1
  std::int64_t bytes = (starts ? 1 : 2) * normed + inputs * input +
                       low_rank_bytes(module, size, context, attention) +
                       feed_forward_bytes(module, size, context);
  if (kind == LayerKind::diffusion_block)
    bytes += diffusion_bytes(module, kind, size, context) -
             (starts ? unmodulated_bytes(module, size, context) : 0);
  if (starts && !adapts(module)) return bytes;  // its attention has no gradient either
  const std::int64_t core =
      recompute == Recompute::selective ? 0 : core_bytes(module, size, context, attention);
  if (attention == AttentionKind::latent) return bytes + latent_bytes(module, size, context) + core;
  if (attention == AttentionKind::linear) return bytes + linear_bytes(module, size, context) + core;
  bytes += query_bytes(module, size, context);
  // Without tokens here nothing attends to what the context group gathers.
  if (size.tokens > 0 || recompute == Recompute::selective) {
    bytes += key_bytes(module, size, context);
    if (module.attention_sinks) bytes += wide_element(context) * (module.heads / context.tp);
  }
  if (module.qk_norm) bytes += head_norm_bytes(module, size, context);
  return bytes + core;
}

std::int64_t projector_bytes(const Module& module, const WorkSize& inside,
                             const RankContext& context) {
  const std::int64_t element = size_of(context.precision).value, tokens = inside.tokens;
  const std::int64_t merged = merged_rows(module);
  const bool trained = trains(module);
  if (module.projector_hidden == 0)
    return trained ? element * own_rows(tokens, context) * module.projector_in : 0;
  // fc1's input, by the rows that come in: merge² of them (audio: merge) make one.
  const std::int64_t input =
      element * own_rows(tokens * merged, context) * (module.projector_in / merged);
  const std::int64_t inner = element * tokens * (module.projector_hidden / context.tp);
  return (trained ? input : 0) + (trained ? 2 : 1) * inner;
}

std::int64_t head_bytes(const Module& module, const WorkSize& size, const RankContext& context) {
  const std::int64_t own = own_rows(size.loss_tokens, context);
  const std::int64_t rows = size_of(context.precision).value * own * module.hidden;
  return (trains(module) ? 2 : 1) * rows + norm_statistics(module, own, context) +
         wide_element(context) * size.loss_tokens * ((module.vocab + context.tp - 1) / context.tp);
}

bool is_block(LayerKind kind) {
  return kind == LayerKind::encoder_block || kind == LayerKind::decoder_block ||
         kind == LayerKind::diffusion_block;
}

}  // namespace

Bytes tape_bytes(const Module& module, LayerRange range, const WorkSize& size,
                 const RankContext& context) {
  const std::vector<LayerKind> stack = layers(module);
  const std::int64_t element = size_of(context.precision).value;
  std::int64_t bytes = 0;
  bool reads = false;  // what conditions a diffusion module's blocks
  for (int layer = range.begin; layer < range.end; ++layer) {
    const WorkSize inside = layer_size(module, layer, size);
    const std::int64_t own = own_rows(inside.tokens, context);
    const LayerKind kind = stack[static_cast<std::size_t>(layer)];
    switch (kind) {
      case LayerKind::latent_embedding:
      case LayerKind::diffusion_head:
        bytes += diffusion_bytes(module, kind, size, context);
        break;
      case LayerKind::audio_embedding:
        // Inputs of both activations; of both matrices, three rows for each of theirs.
        bytes += element * own * 3 * (trains(module) ? 2 * (module.mel_bins + module.hidden) : 0);
        break;
      case LayerKind::diffusion_block:
        reads = true;
        [[fallthrough]];
      case LayerKind::encoder_block:
      case LayerKind::decoder_block:
        bytes +=
            block_bytes(module, starts_graph(module, range, layer, context), kind, layer, inside,
                        context, recompute_of(kind, layer, context.recompute, context.recomputed));
        break;
      case LayerKind::encoder_norm:
        bytes += element * own * module.hidden + norm_statistics(module, own, context);
        break;
      case LayerKind::projector_mlp:
      case LayerKind::projector_linear:
        bytes += projector_bytes(module, inside, context);
        break;
      case LayerKind::patch_embedding:
      case LayerKind::token_embedding:
        break;
      case LayerKind::language_head:
        bytes += head_bytes(module, size, context);
        break;
    }
  }
  return Bytes(bytes + (reads ? element * size.condition * module.condition : 0));
}

Bytes input_in_tape(const Module& module, LayerRange range, const WorkSize& size,
                    const RankContext& context) {
  const LayerKind first = layers(module)[range.begin];
  const WorkSize inside = layer_size(module, range.begin, size);
  const std::int64_t element = size_of(context.precision).value;
  std::int64_t rows = inside.tokens, width = module.hidden;
  bool kept = false;
  if (is_block(first)) {
    kept = context.added_edges == 0 && !starts_graph(module, range, range.begin, context);
  } else if (first == LayerKind::encoder_norm || first == LayerKind::diffusion_head) {
    kept = !module.class_token;
  } else if (first == LayerKind::projector_mlp || first == LayerKind::projector_linear) {
    const int merged = merged_rows(module);
    const bool shares = context.sp && context.tp > 1;
    const bool moves = merged > 1 && module.source != ModuleKind::audio;
    kept =
        trains(module) &&
        (first == LayerKind::projector_mlp ? shares || !moves : !moves && (merged == 1 || !shares));
    rows *= merged;
    width = module.projector_in / merged;
  }
  std::int64_t bytes = kept ? element * own_rows(rows, context) * width : 0;
  // The conditioning, where it is not gathered.
  bool reads = false;
  for (int layer = range.begin; layer < range.end; ++layer)
    reads = reads || layers(module)[static_cast<std::size_t>(layer)] == LayerKind::diffusion_block;
  if (reads && !context.sp) bytes += element * size.condition * module.condition;
  return Bytes(bytes);
}

std::int64_t local_parameters(const Module& module, LayerRange range, const ShardIndex& shard) {
  std::int64_t total = 0;
  for (const Parameter& parameter : parameters(module, range))
    total += parameter.local_count(shard);
  return total;
}

Bytes workspace_bytes(const Module& module, LayerRange range, const WorkSize& size,
                      const RankContext& context) {
  const std::vector<LayerKind> stack = layers(module);
  std::int64_t most = 0;  // one block at a time
  for (int layer = range.begin; layer < range.end; ++layer) {
    const WorkSize inside = layer_size(module, layer, size);
    const LayerKind kind = stack[static_cast<std::size_t>(layer)];
    const bool starts = starts_graph(module, range, layer, context);
    switch (recompute_of(kind, layer, context.recompute, context.recomputed)) {
      case Recompute::none:
        break;
      case Recompute::selective:
        most = std::max(most,
                        core_bytes(module, inside, context, block_at(module, layer - 1).attention));
        break;
      case Recompute::full:
        most = std::max(
            most, block_bytes(module, starts, kind, layer, inside, context, Recompute::none) -
                      block_bytes(module, starts, kind, layer, inside, context, Recompute::full));
        break;
    }
  }
  return Bytes(most);
}

}  // namespace polyphony
