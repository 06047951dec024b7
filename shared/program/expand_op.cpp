#include "shared/program/expand_op.h"

namespace polyphony {

ChunkContext chunk_context(const Program& program, const Compute& compute) {
  ChunkContext context =
      chunk_context(program.model, compute.module, compute.layers.begin,
                    program.layout.modules[compute.module.value], program.precision);
  if (const auto recompute = recompute_of(compute.recipe)) {
    context.recompute = *recompute;
    context.recomputed = kAllLayers;
  }
  return context;
}

Expansion expand(const Program& program, OpId op) {
  const auto* compute = std::get_if<Compute>(&program.ops[op.value].what);
  if (compute == nullptr) return {};
  return expand(program.model.modules[compute->module.value], compute->layers, compute->phase,
                program.size_of(compute->work, compute->module), chunk_context(program, *compute));
}

}  // namespace polyphony
