// What backwards leave for weight parts that are ops of their own (shared/layers/sizes.h), per
// trained parameter: inputs and output gradients of
//   matrix [out, in]     rows·(in + out), as cut; of experts by slot; a router's input is the
//                        shared expert's too
//   norm                 2·H and its statistics of each row; of heads q, k and v and their
//   gradients embedding            the gradient of all rows; of patches that of its output, class
//   tokens' too
//   latent attention     x and dy of its down-projections for own rows, of its up-projections for
//                        all; the input of both down-projections once; what a norm or an
//                        up-projection reads of the joint row keeps the whole of it
// Gradients that two layers share (a residual sum passes its own on) are counted where they are
// made. Patches and frames are the batch's. Source: own count of what exec/ keeps, compared in
// tests/exec/layers/tape_test.cpp; of a diffusion module the norms behind modulations are left out (it has
// no such weight part: Layout).
#include <algorithm>
#include <optional>
#include <string_view>

#include "shared/layers/row_shares.h"
#include "shared/layers/sizes.h"

namespace polyphony {
namespace {

struct Held {
  const Module& module;
  const WorkSize& size;  // as the layer sees it
  const RankContext& context;
  std::int64_t element() const { return size_of(context.precision).value; }
  std::int64_t wide() const { return std::max<std::int64_t>(4, element()); }
  std::int64_t own(std::int64_t rows) const {
    return context.sp ? RowShares{rows, context.tp}.count(context.tensor_index) : rows;
  }
};

bool ends(const Parameter& parameter, std::string_view part) {
  return std::string_view(parameter.name).ends_with(part);
}
bool has(const Parameter& parameter, std::string_view part) {
  return parameter.name.find(part) != std::string::npos;
}

// Of latent attention's matrices and norms, and of small parameters: what the forward has kept (x), and what comes back.
struct Kept {
  std::int64_t x = 0, dy = 0;
};
std::optional<Kept> kept_apart(const Held& held, const Parameter& parameter) {
  const Module& m = held.module;
  for (const char* small : {"linear_conv.weight", "linear_decay.weight", "linear_decay.bias",
                            "linear_norm.weight", "sinks.weight"})
    if (ends(parameter, small))  // read as it is: its own gradient
      return Kept{0, held.wide() * parameter.local_count({.tensor = held.context.tp})};
  if (m.key_value_rank == 0) return {};
  const std::int64_t tokens = held.size.tokens, own = held.own(tokens), element = held.element();
  const std::int64_t joint = m.key_value_rank + m.rotary_dim;
  if (ends(parameter, "kv_down_norm.weight"))
    return Kept{own * (element * joint + held.wide()), own * element * joint};
  if (ends(parameter, "q_down_norm.weight"))
    return Kept{own * (element * m.query_rank + held.wide()), own * element * m.query_rank};
  const bool down = has(parameter, ".q_down.") || has(parameter, ".kv_down.");
  if (!down && !has(parameter, ".q_up.") && !has(parameter, ".kv_up.")) return {};
  const std::int64_t rows = element * (down ? own : tokens);
  const std::vector<std::int64_t> local = parameter.local_shape({.tensor = held.context.tp});
  if (ends(parameter, ".lora_b")) return Kept{rows * local[1], rows * local[0]};
  std::int64_t width = local[1];
  if (has(parameter, ".kv_up.")) width = joint;
  const bool shared = has(parameter, ".q_down.") || (has(parameter, ".q_up.") && m.query_rank == 0);
  const bool gathered = held.context.sp && held.context.tp > 1;
  if (shared && (down || !gathered)) width = 0;
  return Kept{rows * width, rows * local[0]};
}

// A norm of rows, or of heads: one of its parameters stands for all.
std::int64_t norm_bytes(const Held& held, const Parameter& parameter) {
  const Module& m = held.module;
  if (const auto apart = kept_apart(held, parameter)) return apart->x + apart->dy;
  if (ends(parameter, "q_norm.weight")) {
    const std::int64_t heads = m.heads / held.context.tp,
                       keys = std::max(1, m.kv_heads / held.context.tp);
    return held.size.tokens *
           (2 * held.element() * (heads + 2 * keys) * m.head_dim + held.wide() * (heads + keys));
  }
  if (!ends(parameter, "norm.weight") && !ends(parameter, "norm1.weight") &&
      !ends(parameter, "norm2.weight"))
    return 0;
  if (ends(parameter, "k_norm.weight")) return 0;
  const std::int64_t rows =
      held.own(has(parameter, ".head.") ? held.size.loss_tokens : held.size.tokens);
  const int statistics = m.norm == Norm::layer ? 2 : 1;
  return rows * (2 * held.element() * m.hidden + statistics * held.wide());
}

std::int64_t expert_slots(const Held& held) {
  const bool own = held.context.sp && held.context.expert_tp < held.context.tp;
  return held.module.experts_per_token * (own ? held.own(held.size.tokens) : held.size.tokens);
}

// Elements in the compute format, and of what is in a wider one.
std::int64_t matrix_bytes(const Held& held, const Parameter& parameter) {
  const Module& m = held.module;
  const std::int64_t tokens = held.size.tokens, element = held.element();
  if (const auto apart = kept_apart(held, parameter)) return apart->x + apart->dy;
  if (ends(parameter, "patch_embedding.weight"))
    return m.rotary || m.class_token ? element * held.own(tokens) * m.hidden : 0;
  if (ends(parameter, "patch_embedding.position"))
    return element * held.own(tokens + (m.class_token ? held.size.sequences : 0)) * m.hidden;
  if (ends(parameter, "patch_embedding.class_token"))
    return element * held.size.sequences * m.hidden;
  if (ends(parameter, "embedding.weight") && parameter.layer == 0 && m.kind == ModuleKind::language)
    return element * tokens * m.hidden;
  if (parameter.expert) {
    const std::vector<std::int64_t> local =
        parameter.local_shape({.tensor = held.context.expert_tp});
    if (local.size() < 3) return 0;  // a bias
    return element * expert_slots(held) * (local[1] + local[2]);
  }
  const std::vector<std::int64_t> local = parameter.local_shape({.tensor = held.context.tp});
  if (ends(parameter, "router.weight"))
    return held.own(tokens) *
           (held.wide() * local[0] + (m.shared_ffn > 0 ? 0 : element * local[1]));
  std::int64_t rows = tokens;
  if (parameter.copy || has(parameter, ".head.")) rows = held.size.loss_tokens;
  if (m.kind == ModuleKind::diffusion && has(parameter, ".head.")) rows = tokens;
  if (has(parameter, ".time_")) rows = held.size.sequences;
  if (has(parameter, ".cross_key_value.")) rows = held.size.condition;
  if (ends(parameter, "conv1.weight")) rows = 2 * held.own(tokens);
  if (ends(parameter, "conv2.weight")) rows = held.own(tokens);
  return element * rows * (local[0] + local[1]);
}

// The part of it that the forward has kept: inputs, with a norm's statistics. Gathered rows are
// made again.
std::int64_t input_bytes(const Held& held, const Parameter& parameter) {
  const Module& m = held.module;
  const std::int64_t tokens = held.size.tokens, element = held.element();
  if (const auto apart = kept_apart(held, parameter)) return apart->x;
  if (parameter.shape.size() < 2) {
    const std::int64_t both = norm_bytes(held, parameter);
    if (both == 0) return 0;
    const std::int64_t loss = has(parameter, ".head.") ? held.size.loss_tokens : tokens;
    const std::int64_t heads = m.heads / held.context.tp,
                       keys = std::max(1, m.kv_heads / held.context.tp);
    const bool of_heads = ends(parameter, "q_norm.weight");
    return both - element * (of_heads ? tokens * (heads + 2 * keys) * m.head_dim
                                      : held.own(loss) * m.hidden);
  }
  if (ends(parameter, ".lora_b")) return element * tokens * m.lora_rank;
  if (has(parameter, "embedding.")) return 0;
  if (parameter.expert) {
    const std::vector<std::int64_t> local =
        parameter.local_shape({.tensor = held.context.expert_tp});
    return local.size() < 3 ? 0 : element * expert_slots(held) * local[2];
  }
  const bool gathered = held.context.sp && held.context.tp > 1 && parameter.cut != Cut::columns;
  if (gathered) return 0;
  const std::int64_t rows =
      has(parameter, ".head.") || parameter.copy ? held.size.loss_tokens : tokens;
  if (ends(parameter, "router.weight") && m.shared_ffn > 0) return 0;
  return element * rows * parameter.local_shape({.tensor = held.context.tp})[1];
}

}  // namespace

Bytes kept_for_weights(const Module& module, LayerRange range, const WorkSize& size,
                       const RankContext& context) {
  const std::vector<LayerKind> stack = layers(module);
  std::int64_t bytes = 0;
  for (const Parameter& parameter : parameters(module, range)) {
    const LayerKind kind = stack[static_cast<std::size_t>(parameter.layer)];
    const Recompute again =
        recompute_of(kind, parameter.layer, context.recompute, context.recomputed);
    if (!parameter.trained) continue;
    if (again == Recompute::selective && has(parameter, ".out.") && !ends(parameter, ".lora_b"))
      continue;
    const WorkSize inside = layer_size(module, parameter.layer, size);
    if (again == Recompute::full) {  // the block's input, which its first norm reads
      const Held held{module, inside, context};
      if (ends(parameter, ".norm1.weight"))
        bytes += held.element() * held.own(inside.tokens) * module.hidden;
      continue;
    }
    bytes += input_bytes({module, inside, context}, parameter);
  }
  return Bytes(
      std::max<std::int64_t>(0, bytes - input_in_tape(module, range, size, context).value));
}

Bytes held_for_weights(const Module& module, LayerRange range, const WorkSize& size,
                       const RankContext& context) {
  std::int64_t bytes = 0;
  for (const Parameter& parameter : parameters(module, range)) {
    if (!parameter.trained) continue;
    const WorkSize inside = layer_size(module, parameter.layer, size);
    const Held held{module, inside, context};
    bytes +=
        parameter.shape.size() < 2 ? norm_bytes(held, parameter) : matrix_bytes(held, parameter);
  }
  return Bytes(bytes);
}

}  // namespace polyphony
