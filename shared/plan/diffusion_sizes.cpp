#include <algorithm>

#include "shared/plan/sizes.h"
#include "shared/row_shares.h"

namespace polyphony {

std::int64_t diffusion_bytes(const Module& module, LayerKind layer, const WorkSize& size,
                             const ChunkContext& context) {
  const std::int64_t element = size_of(context.precision).value;
  const std::int64_t own = context.sp ? RowShares{size.tokens, context.tp}.share() : size.tokens;
  const std::int64_t hidden = module.hidden, items = size.sequences, rank = module.modulation;
  const bool lora = module.trainable == Trainable::lora;
  if (layer == LayerKind::latent_embedding) return lora ? 0 : element * own * latent_width(module);
  if (layer == LayerKind::diffusion_head)
    return element * (own * (lora ? 1 : 2) * hidden + items * (4 * hidden + 2 * rank)) +
           std::max<std::int64_t>(4, element) * own * latent_width(module);
  const std::int64_t width = std::int64_t{module.heads} * module.head_dim / context.tp;
  std::int64_t elements = items * (8 * hidden + 2 * rank);
  if (context.weight_grad && !lora) elements += own * 2 * hidden;
  if (module.condition == 0) return element * elements;
  elements += own * 2 * hidden + size.tokens * 3 * width + size.condition * 2 * width;
  if (lora) elements += (2 * size.tokens + size.condition) * module.lora_rank;
  return element * elements + 4 * size.tokens * module.heads / context.tp;
}

}  // namespace polyphony
