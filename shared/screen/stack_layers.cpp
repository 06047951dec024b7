#include "shared/screen/stack_layers.h"

#include <algorithm>

#include "shared/error.h"

namespace polyphony {

namespace {

// Returns whether nothing before the first block trains.
bool begins_late(const Module& module) {
  return module.trainable != Trainable::full || module.abstract.is;
}

}  // namespace

ModuleLayout LayerCut::grid() const {
  ModuleLayout grid;
  grid.tp = tp;
  grid.cp = cp;
  grid.ep = ep;
  grid.expert_tp = expert_tp;
  grid.sp = sp;
  grid.tp_pieces = tp_pieces;
  grid.recompute = recompute;
  grid.cp_attention = cp_attention;
  grid.cp_heads = cp_heads;
  grid.ranks = tp * cp * ep;
  return grid;
}

void LayerCut::add_to(Key& key) const {
  key.insert(key.end(), {tp, cp, ep, expert_tp, static_cast<int>(sp), tp_pieces,
                         static_cast<int>(recompute), static_cast<int>(cp_attention), cp_heads});
}

LayerRange recomputed_range(const ModuleLayout& layout) {
  return layout.recompute == Recompute::none ? LayerRange{} : recomputed_layers(layout);
}

StackLayers::StackLayers(const Scenario& scenario) : scenario_(scenario) {
  for (const Module& module : scenario_.model.modules) {
    Stack& stack = stacks_.emplace_back();
    stack.size = static_cast<int>(layers(module).size());
    const int blocks = module.kind == ModuleKind::projector ? 0 : module.layers;
    for (int block = 0; block < blocks; ++block) {
      const BlockKind kind = block_at(module, block);
      const bool starts = block == 0 && begins_late(module);
      const bool known = std::any_of(stack.kinds.begin(), stack.kinds.end(), [&](const Kind& k) {
        return k.kind == kind && k.starts == starts;
      });
      if (!known) stack.kinds.push_back({kind, starts, 1 + block, {}});
    }
    POLYPHONY_CHECK(kBlocks + 2 * stack.kinds.size() <= kMost, module.name);
    for (Kind& kind : stack.kinds) {
      kind.before.assign(static_cast<std::size_t>(stack.size) + 1, 0);
      for (int layer = 0; layer < stack.size; ++layer) {
        const int block = layer - 1;
        const bool same = block >= 0 && block < blocks && block_at(module, block) == kind.kind &&
                          kind.starts == (block == 0 && begins_late(module));
        kind.before[static_cast<std::size_t>(layer) + 1] =
            static_cast<std::uint16_t>(kind.before[static_cast<std::size_t>(layer)] + same);
      }
    }
  }
}

StackLayers::Counts StackLayers::count(const LayerRun& run, LayerRange again) const {
  const Stack& stack = stacks_[run.module.value];
  Counts counts{};
  counts[kFirst] = run.layers.begin == 0 ? 1 : 0;
  counts[kLast] = run.layers.end == stack.size && stack.size > 1 ? 1 : 0;
  const LayerRange both{
      std::max(run.layers.begin, again.begin),
      std::max(std::max(run.layers.begin, again.begin), std::min(run.layers.end, again.end))};
  for (std::size_t k = 0; k < stack.kinds.size(); ++k) {
    const std::vector<std::uint16_t>& before = stack.kinds[k].before;
    const auto all = static_cast<std::uint16_t>(before[run.layers.end] - before[run.layers.begin]);
    std::uint16_t rebuilt = 0;
    if (both.begin < both.end)
      rebuilt = static_cast<std::uint16_t>(before[both.end] - before[both.begin]);
    counts[kBlocks + 2 * k] = static_cast<std::uint16_t>(all - rebuilt);
    counts[kBlocks + 2 * k + 1] = rebuilt;
  }
  return counts;
}

bool StackLayers::alike(const LayerRun& a, const LayerRun& b, LayerRange again) const {
  if (a.module != b.module || a.layers.end - a.layers.begin != b.layers.end - b.layers.begin)
    return false;
  const Counts counts = count(a, again);
  // Blocks of several kinds may be in a different order.
  const auto kinds = std::count_if(counts.begin() + kBlocks, counts.end(),
                                   [](std::uint16_t of_kind) { return of_kind > 0; });
  return kinds <= 1 && counts == count(b, again);
}

LayerRange StackLayers::at(ModuleId module, std::size_t position) const {
  const Stack& stack = stacks_[module.value];
  const int layer = position == kFirst  ? 0
                    : position == kLast ? stack.size - 1
                                        : stack.kinds[(position - kBlocks) / 2].first;
  return {static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(layer + 1)};
}

std::size_t StackLayers::position_of(ModuleId module, int layer, LayerRange again) const {
  const Stack& stack = stacks_[module.value];
  if (layer == 0) return kFirst;
  if (layer == stack.size - 1) return kLast;
  const auto at = static_cast<std::size_t>(layer);
  std::size_t kind = 0;
  while (stack.kinds[kind].before[at] == stack.kinds[kind].before[at + 1]) ++kind;
  return kBlocks + 2 * kind + (layer >= again.begin && layer < again.end ? 1 : 0);
}

ChunkContext StackLayers::context_at(ModuleId module, std::size_t position,
                                     const LayerCut& cut) const {
  ChunkContext context = chunk_context(scenario_.model, module, at(module, position).begin,
                                       cut.grid(), scenario_.training.precision);
  context.recomputed = kAllLayers;
  if (!recomputed(position)) context.recompute = Recompute::none;
  context.added_edges = 0;
  if (position >= kBlocks && stacks_[module.value].kinds[(position - kBlocks) / 2].starts)
    context.input_grad = needs_input_grad(scenario_.model, module);
  return context;
}

}  // namespace polyphony
