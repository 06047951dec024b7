#include "shared/plan/sizes.h"

#include "shared/parameters.h"

namespace polyphony {

Bytes tape_bytes(const Module& module, LayerRange range, const WorkSize& size,
                 const ChunkContext& context) {
  const int tp = context.tp;
  const std::vector<LayerKind> stack = layers(module);
  const std::int64_t element = size_of(context.precision).value;
  const std::int64_t tokens = size.tokens, hidden = module.hidden;
  if (context.recompute == Recompute::full) {
    const bool projector = module.kind == ModuleKind::projector;
    return Bytes(element * tokens * (projector ? module.projector_in : hidden));
  }
  const std::int64_t width = std::int64_t{module.heads} * module.head_dim;
  const std::int64_t key_value = std::int64_t{module.kv_heads} * module.head_dim;
  std::int64_t bytes = 0;
  for (int layer = range.begin; layer < range.end; ++layer) {
    switch (stack[static_cast<std::size_t>(layer)]) {
      case LayerKind::patch_embedding:
        bytes += element * tokens * module.channels * module.patch * module.patch;
        break;
      case LayerKind::encoder_block:
      case LayerKind::decoder_block:
        bytes += element * tokens *
                     (4 * hidden + (2 * width + 2 * key_value +
                                    (module.gated ? 3 : 2) * std::int64_t{module.ffn}) /
                                       tp) +
                 4 * tokens * module.heads / tp;
        break;
      case LayerKind::encoder_norm:
        bytes += element * tokens * hidden;
        break;
      case LayerKind::projector_mlp:
        bytes += element * tokens *
                 (module.projector_in + 2 * std::int64_t{module.projector_hidden} / tp);
        break;
      case LayerKind::token_embedding:
        break;
      case LayerKind::language_head:
        bytes += element * size.loss_tokens * (2 * hidden + module.vocab / tp);
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

TrainingBytes training_bytes(std::int64_t local, int dp, Shard shard, NumberFormat precision) {
  const bool wide = precision == NumberFormat::fp32 || precision == NumberFormat::fp64;
  const std::int64_t gradient = wide ? size_of(precision).value : 4;
  const std::int64_t state = wide ? 2 * size_of(precision).value : 12;
  return {Bytes(local * gradient),
          Bytes(shard == Shard::optimizer ? local * state / dp : local * state)};
}

}  // namespace polyphony
