// Bytes that the input-gradient op keeps for a separate weight-gradient op (shared/chunk/sizes.h):
// for each trained parameter, by its role (shared/kernels/parameter.h), inputs and output
// gradients.
//   matrix [out, in]  rows·(in + out), after the split; for experts rows are slots. Rows that
//                     sequence parallelism gathers count with their padding
//   router            the rank's rows; gradients of the logits in fp32 or wider. Its input counts
//                     with the shared expert, unless that gathers its input
//   norm              gradients of its weight and bias, which the input-gradient op computes (head
//                     norms: of one head's width)
//   table             the gradient of all rows. If ranks place text rows before a reduce-scatter:
//                     of the text rows and of the rank's share of the others. Patches: the gradient
//                     of the embedding's output, with class tokens
//   conditioning      what a diffusion module's blocks read, once
//
// Gradients that two layers share (a residual sum passes its gradient on) count where they are
// computed. Not counted: patches and frames, which belong to the batch; indices and tables per row,
// as for saved activations (positions in tables, ids of a part of the vocabulary, time features).
// Source: own count of what exec/ keeps, checked in tests/exec/chunk/tape_test.cpp.
#include <algorithm>

#include "shared/chunk/expand.h"
#include "shared/chunk/parameters.h"
#include "shared/chunk/sizes.h"
#include "shared/layers/experts.h"
#include "shared/layers/layer_table.h"

namespace polyphony {
namespace {

struct Pair {
  std::int64_t input = 0, gradient = 0;  // saved by the forward, and computed by the backward pass
};

std::int64_t rows_of(const LayerBytes& held, Rows rows) {
  const std::int64_t tokens = held.size.tokens;
  switch (rows) {
    case Rows::tokens:
      return tokens;
    case Rows::own:
      return held.own(tokens);
    case Rows::frames:
      return 2 * held.own(tokens);
    case Rows::embedded:
      return held.own(tokens + (held.module.class_token ? held.size.sequences : 0));
    case Rows::loss:
      return held.size.loss_tokens;
    case Rows::items:
      return held.size.sequences;
    case Rows::condition:
      return held.size.condition;
    case Rows::slots:
      return expert_slots(held.module, tokens, held.context);
  }
  return 0;
}

bool gathers(const LayerBytes& held) { return held.context.sp && held.context.tp > 1; }

// Under sequence parallelism the input of a column-parallel GEMM is gathered, and so is the output
// gradient of a row-parallel one. The rows between the matrices of a LoRA pair are not gathered.
bool gathers_input(const LayerBytes& held, const Parameter& parameter) {
  return gathers(held) && parameter.rows == Rows::tokens && !parameter.expert &&
         parameter.role != Role::low_rank && parameter.cut != Cut::columns;
}
bool gathers_gradient(const LayerBytes& held, const Parameter& parameter) {
  if (!gathers(held) || parameter.rows != Rows::tokens || parameter.expert) return false;
  return held.adapts() ? parameter.role == Role::low_rank && parameter.cut == Cut::replicated
                       : parameter.cut == Cut::columns;
}

// Elements of `rows` rows, padding included, each of which is merged from `merged` gathered rows.
std::int64_t padded(const LayerBytes& held, std::int64_t rows, std::int64_t width,
                    std::int64_t merged = 1) {
  return RowShares{rows * merged, held.context.tp}.padded() * width / merged;
}

// The width of the saved rows that contain a parameter's input.
std::int64_t input_width(const Parameter& parameter, std::int64_t own) {
  return parameter.held_width > 0 ? parameter.held_width : own;
}

Pair norm_bytes(const LayerBytes& held, const Parameter& parameter) {
  const std::int64_t width = parameter.shape.back();
  const bool layer_norms =
      held.module.norm == Norm::layer || held.module.kind == ModuleKind::diffusion;
  const bool bias = layer_norms && width == held.module.hidden;
  return {0, held.wide() * width * (bias ? 2 : 1)};
}

Pair matrix_bytes(const LayerBytes& held, const Parameter& parameter) {
  const ShardIndex place{.tensor = parameter.expert ? held.context.expert_tp : held.context.tp};
  const std::vector<std::int64_t> local = parameter.local_shape(place);
  const bool others = parameter.input == Input::others ||
                      (parameter.input == Input::others_unless_gathered && !gathers(held));
  const std::int64_t rows = rows_of(held, parameter.rows), out = local[local.size() - 2];
  const std::int64_t in = others ? 0 : input_width(parameter, local.back());
  // A projector that merges patches reorders them, which removes the padding.
  const bool joins = held.module.kind == ModuleKind::projector && merged_rows(held.module) > 1;
  const bool ordered = joins && held.module.source != ModuleKind::audio;
  const std::int64_t input = gathers_input(held, parameter) && !ordered
                                 ? padded(held, rows, in, joins ? merged_rows(held.module) : 1)
                                 : rows * in;
  const std::int64_t gradient =
      gathers_gradient(held, parameter) ? padded(held, rows, out) : rows * out;
  return {held.element() * input, held.element() * gradient};
}

Pair table_bytes(const LayerBytes& held, const Parameter& parameter) {
  const WorkSize& size = held.size;
  std::int64_t rows = rows_of(held, parameter.rows);
  if (parameter.rows == Rows::tokens && gathers(held))
    rows = size.text_tokens + held.own(size.tokens - size.text_tokens);
  if (parameter.rows == Rows::items)  // class tokens: the rank's rows minus its patches
    rows = rows_of(held, Rows::embedded) - held.own(size.tokens);
  return {0, held.element() * rows * held.module.hidden};
}

Pair router_bytes(const LayerBytes& held, const Parameter& parameter) {
  const std::int64_t rows = held.own(held.size.tokens);
  const bool shared = held.module.shared_ffn > 0 && !gathers(held);
  return {shared ? 0 : held.element() * rows * parameter.shape[1],
          held.wide() * rows * parameter.shape[0]};
}

Pair pair_bytes(const LayerBytes& held, const Parameter& parameter) {
  switch (parameter.role) {
    case Role::none:
      return {};
    case Role::itself:
      return {0, held.wide() * parameter.local_count({.tensor = held.context.tp})};
    case Role::matrix:
    case Role::low_rank:
      return matrix_bytes(held, parameter);
    case Role::router:
      return router_bytes(held, parameter);
    case Role::table:
      return table_bytes(held, parameter);
    case Role::norm:
      return norm_bytes(held, parameter);
    case Role::head_norms:
      return {0, held.wide() * 2 * held.module.head_dim};
  }
  return {};
}

// Whether the forward pass has saved the parameter's input. Gathered rows, and those of a copy of a
// tied matrix, are computed again.
bool is_kept(const LayerBytes& held, const Parameter& parameter) {
  if (parameter.copy) return false;
  if (held.recompute == Recompute::selective && parameter.after_attention &&
      parameter.role != Role::low_rank)
    return false;
  return !(gathers_input(held, parameter) && parameter.input == Input::gathered_again);
}

LayerBytes layer_bytes(const Module& module, int layer, LayerKind kind, const WorkSize& size,
                       const RankContext& context) {
  return {.module = module,
          .block = is_block(kind) ? block_at(module, layer - 1) : BlockKind{},
          .size = layer_size(module, layer, size),
          .context = context,
          .recompute = recompute_of(kind, layer, context.recompute, context.recomputed)};
}

}  // namespace

Bytes conditioning_for_weights(const Module& module, LayerRange range, const WorkSize& size,
                               const RankContext& context) {
  return module.trainable == Trainable::frozen ? Bytes(0)
                                               : conditioning_in_tape(module, range, size, context);
}

Bytes held_for_weights(const Module& module, LayerRange range, const WorkSize& size,
                       const RankContext& context) {
  const std::vector<LayerKind> stack = layers(module);
  std::int64_t bytes = conditioning_for_weights(module, range, size, context).value;
  for (const Parameter& parameter : parameters(module, range)) {
    if (!parameter.trained) continue;
    const Pair pair =
        pair_bytes(layer_bytes(module, parameter.layer,
                               stack[static_cast<std::size_t>(parameter.layer)], size, context),
                   parameter);
    bytes += pair.input + pair.gradient;
  }
  return Bytes(bytes);
}

Bytes made_for_weights(const Module& module, LayerRange range, const WorkSize& size,
                       const RankContext& context) {
  const std::vector<LayerKind> stack = layers(module);
  std::vector<std::int64_t> made(stack.size());
  for (const Parameter& parameter : parameters(module, range)) {
    if (!parameter.trained) continue;
    const auto layer = static_cast<std::size_t>(parameter.layer);
    const LayerBytes held = layer_bytes(module, parameter.layer, stack[layer], size, context);
    const Pair pair = pair_bytes(held, parameter);
    const bool kept = held.recompute != Recompute::full && is_kept(held, parameter);
    made[layer] += pair.gradient + (kept ? 0 : pair.input);
  }
  return Bytes(*std::max_element(made.begin(), made.end()));
}

}  // namespace polyphony
