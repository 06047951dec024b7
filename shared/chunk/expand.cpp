#include "shared/chunk/expand.h"

#include <algorithm>
#include <tuple>

#include "shared/chunk/expand_layer.h"
#include "shared/error.h"
#include "shared/kernels/chunk_tables.h"
#include "shared/layers/edge_kernels.h"
#include "shared/layers/layer_table.h"

namespace polyphony {

namespace {

// Whether the backward pass needs the gradient of the input of layer `i` of a chunk. A frozen
// latent embedding has nothing upstream that needs one.
bool input_wanted(const Module& module, const std::vector<LayerKind>& stack, LayerRange range,
                  int i, const ChunkContext& context) {
  const bool lora = module.trainable == Trainable::lora;
  const bool in_blocks = lora || module.abstract.is;  // the layer before the blocks does not train
  if (i > range.begin && stack[static_cast<std::size_t>(i - 1)] == LayerKind::latent_embedding)
    return context.weight_grad && !lora;
  // The first layer that has trained parameters.
  const int first = in_blocks ? std::max<int>(range.begin, 1) : range.begin;
  return context.input_grad || i > first;
}

BackwardParts parts_of(const Module& module, const std::vector<LayerKind>& stack, LayerRange range,
                       int i, Phase phase, const ChunkContext& context) {
  if (!context.input_grad && !context.weight_grad) return {};
  const LayerKind kind = stack[static_cast<std::size_t>(i)];
  BackwardParts parts;
  parts.input = phase != Phase::backward_weight;
  parts.input_gradient = input_wanted(module, stack, range, i, context);
  // In a LoRA module only blocks have trained parameters.
  const bool trains = module.trainable != Trainable::lora || is_block(kind);
  parts.weight = phase != Phase::backward_input && context.weight_grad && trains;
  if (parts.input) parts.again = recompute_of(kind, i, context.recompute, context.recomputed);
  return parts;
}

bool has_edges(const Module& module, LayerRange range, const ChunkContext& context) {
  return context.added_edges > 0 || reads_conditioning(module, range);
}

// Returns the kind of the block at a layer; a default one for layers that are not blocks.
BlockKind block_of(const Module& module, LayerKind kind, int layer) {
  return is_block(kind) ? block_at(module, layer - 1) : BlockKind{};
}

bool has_blocks(const std::vector<LayerKind>& stack, LayerRange range) {
  return std::any_of(stack.begin() + range.begin, stack.begin() + range.end, is_block);
}

// Adds layer `i` of a chunk.
void append(const Module& module, const std::vector<LayerKind>& stack, LayerRange range, int i,
            Phase phase, const WorkSize& size, const ChunkContext& context, KernelForm form,
            Expansion& out) {
  const LayerKind kind = stack[static_cast<std::size_t>(i)];
  const WorkSize inside = layer_size(module, i, size);
  const LayerRow& row = layer_row(kind);
  const BlockKind block = block_of(module, kind, i);
  const bool conditioned = i == range.begin && reads_conditioning(module, range);
  if (phase == Phase::forward || phase == Phase::recompute) {
    const LayerKernels layer(module, kind, block, inside, context, true, out, form);
    if (i == range.begin && form == KernelForm::own && has_blocks(stack, range))
      ChunkTables(
          LayerKernels(module, kind, block, layer_size(module, 1, size), context, true, out, form))
          .forward();
    if (i == range.begin) EdgeKernels(layer).in(conditioned);
    return row.forward(layer);
  }
  const BackwardParts parts = parts_of(module, stack, range, i, phase, context);
  const LayerKernels layer(module, kind, block, inside, context, parts.input_gradient, out, form);
  if (parts.again == Recompute::full) row.forward(layer);
  if (parts.input) row.backward_input(layer, parts.again == Recompute::selective);
  if (parts.weight) row.backward_weight(layer);
  if (parts.input && i == range.begin) EdgeKernels(layer).out(conditioned);
}

Expansion expand_as(KernelForm form, const Module& module, LayerRange range, Phase phase,
                    const WorkSize& size, const ChunkContext& context) {
  const std::vector<LayerKind> stack = layers(module);
  POLYPHONY_CHECK(range.begin <= range.end && range.end <= stack.size(),
                  module.name << " has " << stack.size() << " layers, got the range ["
                              << range.begin << ", " << range.end << ")");
  POLYPHONY_CHECK(context.tp >= 1 && context.cp >= 1, "tp " << context.tp << ", cp " << context.cp);
  Expansion out;
  out.kernels.reserve(
      16 * static_cast<std::size_t>(range.size()));  // a dense block has at most 15 per phase
  const bool forward = phase == Phase::forward || phase == Phase::recompute;
  for (int i = 0; i < range.size(); ++i)
    append(module, stack, range, forward ? range.begin + i : range.end - 1 - i, phase, size,
           context, form, out);
  return out;
}

}  // namespace

Expansion expand(const Module& module, LayerRange range, Phase phase, const WorkSize& size,
                 const ChunkContext& context) {
  return expand_as(KernelForm::plain, module, range, phase, size, context);
}

Expansion expand_own(const Module& module, LayerRange range, Phase phase, const WorkSize& size,
                     const ChunkContext& context) {
  return expand_as(KernelForm::own, module, range, phase, size, context);
}

Expansion expand_layer(const Module& module, LayerRange chunk, int layer, Phase phase,
                       const WorkSize& size, const ChunkContext& context) {
  Expansion out;
  append(module, layers(module), chunk, layer, phase, size, context, KernelForm::plain, out);
  return out;
}

BackwardParts backward_parts(const Module& module, LayerRange chunk, int layer, Phase phase,
                             const ChunkContext& context) {
  return parts_of(module, layers(module), chunk, layer, phase, context);
}

int end_of_alike(const Module& module, LayerRange chunk, int layer, const WorkSize& size,
                 const ChunkContext& context) {
  const std::vector<LayerKind> stack = layers(module);
  if (layer == chunk.begin && has_edges(module, chunk, context)) return layer + 1;
  const auto traits = [&](int i) {
    const LayerKind kind = stack[static_cast<std::size_t>(i)];
    return std::tuple(kind, block_of(module, kind, i), layer_size(module, i, size),
                      recompute_of(kind, i, context.recompute, context.recomputed),
                      input_wanted(module, stack, chunk, i, context));
  };
  const auto first = traits(layer);
  int end = layer + 1;
  while (end < chunk.end && traits(end) == first) ++end;
  return end;
}

Recompute recompute_of(LayerKind kind, int position, Recompute recompute, LayerRange recomputed) {
  return is_block(kind) && position >= recomputed.begin && position < recomputed.end
             ? recompute
             : Recompute::none;
}

LayerRange recomputed_layers(const ModuleLayout& layout) {
  if (layout.recompute_blocks.empty()) return kAllLayers;
  const auto position = [&](std::size_t i) {
    return static_cast<std::uint16_t>(layout.recompute_blocks.at(i) + 1);
  };
  return {position(0), position(1)};
}

ChunkContext chunk_context(const Model& model, ModuleId module, int begin,
                           const ModuleLayout& layout, NumberFormat precision) {
  // Counts inputs over model edges into the chunk's first layer. A diffusion module's conditioning
  // enters every chunk (shared/plan/links.h).
  const bool diffusion = model.modules[module.value].kind == ModuleKind::diffusion;
  bool edge_grad = false;
  int added = 0;
  for (const Edge& edge : model.edges) {
    if (edge.to != module || !(diffusion || edge.to_layer == begin)) continue;
    edge_grad = edge_grad || needs_backward(model, edge.from);
    if (begin > 0 && !diffusion) ++added;
  }
  return {.tp = layout.tp,
          .sp = layout.sp,
          .tp_pieces = layout.tp_pieces,
          .cp = layout.cp,
          .cp_attention = layout.cp_attention,
          .cp_heads =
              layout.gathers_by_heads(model.modules[module.value].kv_heads) ? layout.cp_heads : 0,
          .ep = layout.ep,
          .expert_tp = layout.experts_tp(),
          .recompute = layout.recompute,
          .recomputed = recomputed_layers(layout),
          .precision = precision,
          .input_grad = begin > 0 ? needs_backward(model, module) : edge_grad,
          .edge_grad = edge_grad,
          .added_edges = added,
          .weight_grad = model.modules[module.value].trainable != Trainable::frozen};
}

Flops total_flops(const Expansion& expansion) {
  Flops total{};
  for (const Kernel& kernel : expansion.kernels) total += kernel.flops;
  return total;
}

}  // namespace polyphony
