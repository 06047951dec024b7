#include <algorithm>

#include "shared/layers/row_shares.h"
#include "shared/layers/sizes.h"

namespace polyphony {
namespace {

std::int64_t own_tokens(const WorkSize& size, const RankContext& context) {
  return context.sp ? RowShares{size.tokens, context.tp}.count(context.tensor_index) : size.tokens;
}

}  // namespace

// n items, own rows q, T tokens, C rows read across, R the modulation's width; a module that
// trains:
//   latent embedding   e·q·p, p features of a patch
//   head               e·q·2H + 2·w·q + n·(e·(2H + 2R) + adaptive) + w·q·p, the loss' difference;
//                      bf16 without 2H
//   block              e·q·2H of the branches behind gates, n·(e·(6H + 2R) + 2·adaptive)
//   adaptive           of one norm: 1 + scale; in bf16 this and the shift in fp32: e·H, bf16 4·2H
//   across             e·(q·2H + T·3·A·D/t + C·2·A·D/t) + 2·w·q + w·T·A/t: inputs of norm and
//   query,
//                      q, the attention output and its rows (one of them for a single item), k and
//                      v, statistics, log-sum-exp
// Without gradients of matrices their inputs go; LoRA keeps those of the adapted ones, and e·r·(2·T
// + C).
std::int64_t diffusion_bytes(const Module& module, LayerKind layer, const WorkSize& size,
                             const RankContext& context) {
  const std::int64_t element = size_of(context.precision).value;
  const std::int64_t wide = std::max<std::int64_t>(4, element);
  const std::int64_t own = own_tokens(size, context);
  const std::int64_t hidden = module.hidden, items = size.sequences, rank = module.modulation;
  const bool trained = module.trainable == Trainable::full;
  const bool adapted = module.trainable == Trainable::lora;
  if (layer == LayerKind::latent_embedding)
    return trained ? element * own * latent_width(module) : 0;
  const std::int64_t adaptive = (element < 4 ? 2 * wide : element) * hidden;
  if (layer == LayerKind::diffusion_head)
    return element * own * (trained ? 2 : 1) * hidden + 2 * wide * own +
           items * ((element < 4 ? 0 : element * 2 * hidden) + (trained ? element * 2 * rank : 0) +
                    adaptive) +
           wide * own * latent_width(module);
  const std::int64_t width = std::int64_t{module.heads} * module.head_dim / context.tp;
  std::int64_t bytes = items * (element * (6 * hidden + (trained ? 2 * rank : 0)) + 2 * adaptive);
  if (trained) bytes += element * own * 2 * hidden;
  if (module.condition == 0) return bytes;
  const int outputs = items > 1 && (trained || adapted) ? 2 : 1;
  bytes += element * (own * (trained || adapted ? 2 : 1) * hidden +
                      size.tokens * (1 + outputs) * width + size.condition * 2 * width) +
           2 * wide * own;
  if (adapted) bytes += element * (2 * size.tokens + size.condition) * module.lora_rank;
  return bytes + wide * size.tokens * (module.heads / context.tp);
}

std::int64_t unmodulated_bytes(const Module& module, const WorkSize& size,
                               const RankContext& context) {
  const std::int64_t element = size_of(context.precision).value;
  const std::int64_t wide = std::max<std::int64_t>(4, element);
  const std::int64_t own = own_tokens(size, context);
  const bool crosses = module.condition > 0 && module.trainable == Trainable::frozen;
  return (element < 4 ? 2 * wide : element) * module.hidden * size.sequences +
         (crosses ? own * (element * module.hidden + 2 * wide) : 0);
}

}  // namespace polyphony
