#include "sim/published/reserved.h"

#include <algorithm>

#include "shared/held/stack_sizes.h"

namespace polyphony::sim {
namespace {

constexpr double kAllocatedShare = 0.94;

// Returns the free blocks at the loss, on a rank with the output layer.
Bytes free_at_loss(const PublishedCase& in, const WorkSize& size) {
  const Module& module = in.scenario.model.modules.front();
  const ModuleLayout& grid = in.layout.modules.front();
  const SoftwareStack& stack = in.profile.stack;
  ChunkContext context;
  context.tp = grid.tp, context.sp = grid.sp, context.cp = grid.cp, context.ep = grid.ep;
  context.expert_tp = grid.experts_tp();
  context.recompute = grid.recompute;
  context.recomputed = recomputed_layers(grid);
  context.precision = in.scenario.training.precision;
  const Bytes temporaries = chunk_held(stack, module, {1, 2}, size, context).forward;
  if (stack.memory.fused_loss) return temporaries;
  const std::int64_t words = (module.vocab + grid.tp - 1) / grid.tp;
  return temporaries + size_of(context.precision) * (size.loss_tokens * words);
}

}  // namespace

Bytes reserved_bytes(const PublishedCase& in, const Prediction& prediction) {
  const bool fsdp = in.profile.stack.memory.keeping == Keeping::fsdp;
  Bytes most{};
  for (const RankMemory& memory : prediction.memory) most = std::max(most, memory.peak);
  if (!fsdp)
    return Bytes(static_cast<std::int64_t>(static_cast<double>(most.value) / kAllocatedShare));
  const Program& program = prediction.program;
  const int size = static_cast<int>(layers(in.scenario.model.modules.front()).size());
  for (const ParamGroup& group : program.params) {
    if (group.layers.end != size) continue;
    Bytes free{};
    for (std::size_t work = 0; work < program.works.size(); ++work)
      free = std::max(free, free_at_loss(in, program.size_of(WorkId(work), group.module)));
    most = std::max(most, prediction.memory[group.rank.value].peak + free);
  }
  return most;
}

}  // namespace polyphony::sim
