#include "shared/expand.h"

#include <algorithm>

#include "shared/error.h"
#include "shared/layer_kernels.h"

namespace polyphony {

const char* name(KernelKind kind) {
  switch (kind) {
    case KernelKind::gemm:
      return "gemm";
    case KernelKind::attention:
      return "attention";
    case KernelKind::elementwise:
      return "elementwise";
    case KernelKind::embedding:
      return "embedding";
    case KernelKind::loss:
      return "loss";
  }
  return "?";
}

Expansion expand(const Module& module, LayerRange range, Phase phase, const WorkSize& size,
                 const ChunkContext& context) {
  const std::vector<LayerKind> stack = layers(module);
  POLYPHONY_CHECK(range.begin <= range.end && range.end <= stack.size(),
                  module.name << " has " << stack.size() << " layers, asked for [" << range.begin
                              << ", " << range.end << ")");
  POLYPHONY_CHECK(context.tp >= 1 && context.cp >= 1, "tp " << context.tp << ", cp " << context.cp);
  Expansion out;
  out.kernels.reserve(16 *
                      static_cast<std::size_t>(range.size()));  // a dense block has at most 15 a phase
  const bool backward_input = phase == Phase::backward || phase == Phase::backward_input;
  const bool backward_weight = phase == Phase::backward || phase == Phase::backward_weight;
  if (backward_input || backward_weight) {
    if (!context.input_grad && !context.weight_grad) return out;
    // The first layer that trains anything; the embedding below a LoRA module's blocks does not.
    const bool lora = module.trainable == Trainable::lora;
    const int first = lora ? std::max<int>(range.begin, 1) : range.begin;
    for (int i = range.end - 1; i >= range.begin; --i) {
      const bool input_grad = context.input_grad || i > first;
      LayerKernels layer(module, stack[static_cast<std::size_t>(i)], size, context, input_grad,
                         out);
      if (backward_input) layer.backward_input();
      if (backward_weight && context.weight_grad) layer.backward_weight();
    }
    return out;
  }
  for (int i = range.begin; i < range.end; ++i) {
    LayerKernels(module, stack[static_cast<std::size_t>(i)], size, context, true, out).forward();
  }
  return out;
}

ChunkContext chunk_context(const Model& model, ModuleId module, int begin,
                           const ModuleLayout& layout, NumberFormat precision) {
  const bool trained = model.modules[module.value].trainable != Trainable::frozen;
  return {.tp = layout.tp,
          .sp = layout.sp,
          .cp = layout.cp,
          .ep = layout.ep,
          .expert_tp = layout.experts_tp(),
          .recompute = layout.recompute,
          .precision = precision,
          .input_grad = needs_input_grad(model, module) || (trained && begin > 0),
          .weight_grad = trained};
}

ChunkContext chunk_context(const Program& program, const Compute& compute) {
  return chunk_context(program.model, compute.module, compute.layers.begin,
                       program.layout.modules[compute.module.value], program.precision);
}

Expansion expand(const Program& program, OpId op) {
  const auto* compute = std::get_if<Compute>(&program.ops[op.value].what);
  if (compute == nullptr) return {};
  return expand(program.model.modules[compute->module.value], compute->layers, compute->phase,
                program.size_of(compute->work, compute->module), chunk_context(program, *compute));
}

Flops total_flops(const Expansion& expansion) {
  Flops total{};
  for (const Kernel& kernel : expansion.kernels) total += kernel.flops;
  return total;
}

}  // namespace polyphony
