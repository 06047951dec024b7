#include "shared/cost/unfused.h"

#include "shared/layers/layer_table.h"
#include "shared/work/row_shares.h"

namespace polyphony {
namespace {

// Elements per token to which a block adds biases on one rank: `inner`, the outputs of the
// tensor-parallel matrices; `outer`, the outputs of the two matrices that end in the hidden width.
struct Biased {
  std::int64_t inner = 0, outer = 0;  // outer: per token of the rank's own rows
};
Biased biased(const Module& m, const ChunkContext& context) {
  const std::int64_t width = std::int64_t{m.heads} * m.head_dim,
                     keys = std::int64_t{m.kv_heads} * m.head_dim;
  const std::int64_t feed = m.experts > 0 ? 0 : std::int64_t{m.ffn} * (m.gated ? 2 : 1);
  return {(width + 2 * keys + feed) / context.tp, std::int64_t{m.hidden} * (m.experts > 0 ? 1 : 2)};
}

}  // namespace

Kernel unfused_passes(const Module& module, LayerKind layer, Phase phase, const WorkSize& size,
                      const ChunkContext& context, bool dropout) {
  Kernel kernel{.kind = KernelKind::elementwise, .layer = layer, .launches = 0};
  if (!is_block(layer) || phase == Phase::backward_weight) return kernel;
  const bool forward = phase == Phase::forward || phase == Phase::recompute;
  const std::int64_t own =
      context.sp ? RowShares{size.tokens, context.tp}.share() : std::int64_t{size.tokens};
  const Biased rows = biased(module, context);
  const std::int64_t element = size_of(context.precision).value;
  const std::int64_t passes = forward ? 2 : 1;
  std::int64_t bytes = (size.tokens * rows.inner + own * rows.outer) * passes * element;
  kernel.launches = 4;
  if (dropout) {
    bytes += own * rows.outer * (2 * element + 1);
    kernel.launches += 2;
  }
  kernel.bytes = Bytes(bytes);
  return kernel;
}

}  // namespace polyphony
