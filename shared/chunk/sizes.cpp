#include "shared/chunk/sizes.h"

#include <algorithm>

#include "shared/chunk/expand.h"
#include "shared/chunk/parameters.h"
#include "shared/layers/layer_table.h"

namespace polyphony {
namespace {

// Nothing that needs a gradient enters a module's first block, whose norm trains nothing. A
// diffusion module's conditioning enters later.
bool starts_graph(const Module& module, LayerRange range, int layer, const RankContext& context) {
  const bool fed = module.kind == ModuleKind::diffusion ? range.begin > 0 : context.input_grad;
  return module.trainable != Trainable::full && layer == 1 && !fed;
}

LayerBytes layer_bytes(const Module& module, const std::vector<LayerKind>& stack, LayerRange range,
                       int layer, const WorkSize& size, const RankContext& context) {
  const LayerKind kind = stack[static_cast<std::size_t>(layer)];
  return {.module = module,
          .block = is_block(kind) ? block_at(module, layer - 1) : BlockKind{},
          .size = layer_size(module, layer, size),
          .context = context,
          .starts = starts_graph(module, range, layer, context),
          .recompute = recompute_of(kind, layer, context.recompute, context.recomputed)};
}

}  // namespace

Bytes conditioning_in_tape(const Module& module, LayerRange range, const WorkSize& size,
                           const RankContext& context) {
  if (!reads_conditioning(module, range)) return Bytes(0);
  const std::int64_t rows =
      context.sp ? RowShares{size.condition, context.tp}.padded() : size.condition;
  return Bytes(size_of(context.precision).value * rows * module.condition);
}

Bytes tape_bytes(const Module& module, LayerRange range, const WorkSize& size,
                 const RankContext& context) {
  const std::vector<LayerKind> stack = layers(module);
  std::int64_t bytes = conditioning_in_tape(module, range, size, context).value;
  for (int layer = range.begin; layer < range.end; ++layer)
    bytes += layer_row(stack[static_cast<std::size_t>(layer)])
                 .tape(layer_bytes(module, stack, range, layer, size, context));
  return Bytes(bytes);
}

Bytes input_in_tape(const Module& module, LayerRange range, const WorkSize& size,
                    const RankContext& context) {
  const std::vector<LayerKind> stack = layers(module);
  const LayerBytes first = layer_bytes(module, stack, range, range.begin, size, context);
  // The conditioning, where it is not gathered.
  return Bytes(layer_row(stack[range.begin]).input_kept(first) +
               (context.sp ? 0 : conditioning_in_tape(module, range, size, context).value));
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
    LayerBytes bytes = layer_bytes(module, stack, range, layer, size, context);
    const LayerRow& row = layer_row(stack[static_cast<std::size_t>(layer)]);
    std::int64_t made = 0;
    switch (bytes.recompute) {
      case Recompute::none:
        break;
      case Recompute::selective:
        made = row.again_bytes(bytes);
        break;
      case Recompute::full: {
        const std::int64_t kept = row.tape(bytes);
        bytes.recompute = Recompute::none;
        made = row.tape(bytes) - kept;
        break;
      }
    }
    most = std::max(most, made + row.brought_bytes(bytes));
  }
  return Bytes(most);
}

}  // namespace polyphony
