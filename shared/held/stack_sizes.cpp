#include "shared/held/stack_sizes.h"

#include <algorithm>
#include <map>

#include "shared/chunk/expand.h"
#include "shared/work/row_shares.h"

namespace polyphony {
namespace {

bool fsdp(const SoftwareStack& stack) { return stack.memory.keeping == Keeping::fsdp; }

std::int64_t own_rows(std::int64_t rows, const RankContext& context) {
  return context.sp ? RowShares{rows, context.tp}.count(context.tensor_index) : rows;
}
std::int64_t vocabulary(const Module& module, const RankContext& context) {
  return (module.vocab + context.tp - 1) / context.tp;
}

// Logits, of L rows with a label: what stays, and the most in either pass.
LayerHeld loss_held(const StackMemory& memory, std::int64_t logits, std::int64_t element,
                    bool cut) {
  const bool in_place = memory.fused_loss && memory.keeping != Keeping::fsdp;
  if (in_place) return {element * logits, element * logits, element * logits};
  if (memory.keeping != Keeping::fsdp)  // the exponentials, fp32; logits and gradients, as computed
    return {4 * logits, (4 + element) * logits, (4 + element) * logits};
  if (memory.fused_loss) return {element * logits, element * logits, 2 * element * logits};
  // Their logarithms, fp32. Forward: logits as computed and in fp32 beside them. Backward: the
  // gradients of the loss and of the logarithms. Cut over ranks (loss_parallel), arithmetic by
  // arithmetic: one more of each, shifted logits and the exponentials beside their sum.
  const int more = cut ? 4 : 0;
  return {4 * logits, (8 + element + more) * logits, (12 + more) * logits};
}

LayerHeld head_held(const SoftwareStack& stack, const Module& module, const WorkSize& size,
                    const RankContext& context) {
  const std::int64_t element = size_of(context.precision).value;
  const std::int64_t own = own_rows(size.loss_tokens, context) * module.hidden,
                     whole = size.loss_tokens * module.hidden;
  const std::int64_t statistics = (module.norm == Norm::layer ? 8 : 4) * own / module.hidden;
  const std::int64_t inputs = module.trainable != Trainable::full ? own
                              : fsdp(stack)                       ? own + whole
                                                                  : 2 * own;
  const LayerHeld loss = loss_held(stack.memory, size.loss_tokens * vocabulary(module, context),
                                   element, context.tp > 1);
  const std::int64_t kept = element * inputs + statistics;
  // Before the logits are gone, the gradient of the head's input.
  return {kept + loss.kept, kept + loss.forward,
          kept + std::max(loss.backward, loss.kept + element * (whole + own))};
}

LayerHeld embedding_held(const SoftwareStack& stack, const Module& module, const WorkSize& size,
                         const RankContext& context) {
  const std::int64_t element = size_of(context.precision).value;
  const std::int64_t rows = own_rows(size.tokens, context) * module.hidden;
  const std::int64_t mask = stack.memory.dropout ? rows : 0;
  const std::int64_t gradient =
      module.trainable == Trainable::full ? vocabulary(module, context) * module.hidden : 0;
  return {mask, mask + element * rows, mask + element * (rows + gradient)};
}

// The kinds of attention that block_held() knows: queries, keys and values by head, and scores.
bool by_heads(AttentionKind kind) {
  return kind == AttentionKind::full || kind == AttentionKind::window ||
         kind == AttentionKind::latent;
}

LayerHeld layer_held(const SoftwareStack& stack, const Module& module, int layer, LayerKind kind,
                     const WorkSize& size, const RankContext& context) {
  const LayerRange alone{static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(layer + 1)};
  switch (kind) {
    case LayerKind::encoder_block:
    case LayerKind::decoder_block: {
      const bool starts = module.trainable != Trainable::full && layer == 1 && !context.input_grad;
      const bool known = by_heads(block_at(module, layer - 1).attention);
      if (starts || !known || module.trainable == Trainable::lora) break;
      return block_held(stack, module, layer_size(module, layer, size), context,
                        recompute_of(kind, layer, context.recompute, context.recomputed),
                        layer - 1);
    }
    case LayerKind::language_head:
      return head_held(stack, module, size, context);
    case LayerKind::token_embedding:
      return embedding_held(stack, module, size, context);
    case LayerKind::patch_embedding:
    case LayerKind::audio_embedding:
    case LayerKind::encoder_norm:
    case LayerKind::projector_mlp:
    case LayerKind::projector_linear:
    case LayerKind::latent_embedding:
    case LayerKind::diffusion_block:
    case LayerKind::diffusion_head:
    case LayerKind::abstract_input:
    case LayerKind::abstract_block:
    case LayerKind::abstract_output:
      break;
  }
  const std::int64_t kept = tape_bytes(module, alone, size, context).value;
  return {kept, kept, kept + workspace_bytes(module, alone, size, context).value};
}

}  // namespace

ChunkHeld chunk_held(const SoftwareStack& stack, const Module& module, LayerRange range,
                     const WorkSize& size, const RankContext& context) {
  const std::vector<LayerKind> kinds = layers(module);
  std::int64_t kept = 0, forward = 0, loss = 0, backward = 0;
  for (int layer = range.begin; layer < range.end; ++layer) {
    const LayerKind kind = kinds[static_cast<std::size_t>(layer)];
    const LayerHeld held = layer_held(stack, module, layer, kind, size, context);
    forward = std::max(forward, kept + held.forward);
    std::int64_t& most = kind == LayerKind::language_head ? loss : backward;
    most = std::max(most, kept + held.backward);
    kept += held.kept;
  }
  const auto besides = [&](std::int64_t most) {
    return Bytes(std::max<std::int64_t>(0, most - kept));
  };
  return {Bytes(kept), besides(forward), besides(loss), besides(backward)};
}

HeldBytes stack_held_bytes(const SoftwareStack& stack, const HeldElements& elements, Shard shard,
                           int shards, int shard_index, bool pipelined, NumberFormat precision) {
  // FSDP2 divides the masters where it divides gradients; what it gathered then stays.
  const bool stays = fsdp(stack) && shards > 1 &&
                     (shard == Shard::gradients || (shard == Shard::full && pipelined));
  HeldBytes bytes =
      held_bytes(elements, stays ? Shard::full : shard, shards, shard_index, precision);
  if (fsdp(stack) && size_of(precision) < Bytes(4)) {
    bytes.values = Bytes(bytes.values.value / size_of(precision).value * 4);
    bytes.optimizer = Bytes(bytes.optimizer.value / 12 * 8);
  }
  const Bytes ours = gradient_size(precision);
  if (stack.memory.gradient > Bytes(0))
    bytes.gradient = Bytes(bytes.gradient.value / ours.value * stack.memory.gradient.value);
  if (stays) {
    bytes.values += size_of(precision) * (elements.trained + elements.frozen);
    bytes.gathered = {};
  }
  if (stays && pipelined) bytes.gradient += ours * elements.trained;
  return bytes;
}

std::vector<std::int64_t> unit_elements(const SoftwareStack& stack,
                                        const std::vector<Parameter>& parameters,
                                        const ShardIndex& place, int size) {
  std::map<int, std::int64_t> layers;
  for (const Parameter& parameter : parameters) {
    const bool end = parameter.layer == 0 || parameter.layer + 1 == size;
    if (!fsdp(stack) || !end) layers[parameter.layer] += parameter.local_count(place);
  }
  std::vector<std::int64_t> elements;
  for (const auto& [layer, count] : layers) elements.push_back(count);
  std::sort(elements.rbegin(), elements.rend());
  return elements;
}

Bytes stack_gathered_bytes(const SoftwareStack& stack, const std::vector<std::int64_t>& units,
                           bool pipelined, NumberFormat precision) {
  if (units.empty() || (fsdp(stack) && pipelined)) return {};
  return size_of(precision) * (units.front() + (units.size() > 1 ? units[1] : 0));
}

Bytes stack_whole_gradient_bytes(const SoftwareStack& stack, const std::vector<std::int64_t>& units,
                                 bool pipelined, NumberFormat precision) {
  if (units.empty()) return {};
  if (fsdp(stack) && pipelined) return size_of(precision) * units.front();
  const std::int64_t before = units.size() > 1 ? units[1] : 0;
  return units.front() * (size_of(precision) + gradient_size(precision)) +
         before * gradient_size(precision);
}

void add_matrix_shapes(const std::vector<Parameter>& parameters, const ShardIndex& place,
                       bool with_head, MatrixShapes& shapes) {
  for (const Parameter& parameter : parameters) {
    const std::vector<std::int64_t> shape = parameter.local_shape(place);
    const bool table = !parameter.decay && !(parameter.tied && with_head);
    if (!parameter.trained || shape.size() < 2 || table) continue;
    const std::size_t matrix = shape.size() - 2;  // an expert's
    shapes.emplace_back(shape[matrix], shape[matrix + 1]);
  }
}

std::int64_t end_copies(const SoftwareStack& stack, std::int64_t elements, bool pipelined) {
  return fsdp(stack) ? (pipelined ? 1 : 2) * elements : 0;
}

Bytes standing_bytes(const SoftwareStack& stack, Standing standing, NumberFormat precision) {
  MatrixShapes& shapes = standing.shapes;
  if (!stack.memory.fused_gradient_sums) shapes.clear();
  std::sort(shapes.begin(), shapes.end());
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  std::int64_t elements = standing.ends + (fsdp(stack) ? 0 : standing.rows);
  for (const auto& [rows, columns] : shapes) elements += rows * columns;
  return stack.memory.workspaces + elements * size_of(precision);
}

}  // namespace polyphony
