#include "shared/search/stack_layers.h"

#include <algorithm>

namespace polyphony {

LayerCut::LayerCut(const ModuleLayout& grid)
    : tp(grid.tp),
      cp(grid.cp),
      ep(grid.ep),
      expert_tp(grid.expert_tp),
      first_rank(grid.first_rank),
      sp(grid.sp),
      recompute(grid.recompute) {}

ModuleLayout LayerCut::grid() const {
  ModuleLayout grid;
  grid.tp = tp;
  grid.cp = cp;
  grid.ep = ep;
  grid.expert_tp = expert_tp;
  grid.first_rank = first_rank;
  grid.sp = sp;
  grid.recompute = recompute;
  grid.ranks = tp * cp * ep;
  return grid;
}

StackLayers::StackLayers(const Scenario& scenario) : scenario_(scenario) {
  for (const Module& module : scenario_.model.modules)
    stack_.push_back(static_cast<int>(layers(module).size()));
}

StackLayers::Counts StackLayers::count(const Chunk& chunk, const ModuleLayout& layout) const {
  const int stack = stack_[chunk.module.value];
  const int first = chunk.layers.begin == 0 ? 1 : 0;
  const int last = chunk.layers.end == stack && stack > 1 ? 1 : 0;
  const int begin = chunk.layers.begin + first, end = chunk.layers.end - last;  // of its blocks
  int again = 0;
  if (layout.recompute != Recompute::none) {
    const LayerRange range = recomputed_layers(layout);
    again = std::max(0, std::min<int>(end, range.end) - std::max<int>(begin, range.begin));
  }
  return {first, end - begin - again, again, last};
}

ChunkContext StackLayers::context_at(ModuleId module, std::size_t position,
                                     const LayerCut& cut) const {
  ChunkContext context =
      chunk_context(scenario_.model, module, at(module, position).front().layer.begin, cut.grid(),
                    scenario_.training.precision);
  context.recomputed = kAllLayers;
  if (position != kRecomputed) context.recompute = Recompute::none;
  context.added_edges = 0;  // of inner layers: not counted
  // LoRA blocks as cheap as the first, which stops where nothing before it trains.
  const Module& module_of = scenario_.model.modules[module.value];
  if (module_of.trainable == Trainable::lora)
    context.input_grad = needs_input_grad(scenario_.model, module);
  return context;
}

std::vector<StackLayers::Alike> StackLayers::at(ModuleId module, std::size_t position) const {
  const auto alone = [](int layer) {
    return LayerRange{static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(layer + 1)};
  };
  const int last = stack_[module.value] - 1;
  const Module& of = scenario_.model.modules[module.value];
  if (position == kFirst || of.layers == 0) return {{alone(0)}};
  if (position == kLast) return {{alone(last)}};
  std::map<BlockKind, Alike> kinds;
  for (int block = 0; block < of.layers; ++block) {
    const auto [known, added] = kinds.try_emplace(block_at(of, block), Alike{alone(1 + block)});
    if (!added) ++known->second.count;
  }
  std::vector<Alike> layers;
  for (const auto& [kind, alike] : kinds) layers.push_back(alike);
  return layers;
}

HeldElements StackLayers::parameters_of(const Chunk& chunk, int tp) {
  const auto [known, added] = parameters_.try_emplace({chunk.module.value, tp});
  if (added) {
    const Module& module = scenario_.model.modules[chunk.module.value];
    for (std::size_t position = 0; position < kPositions; ++position) {
      HeldElements sum;
      std::int64_t layers = 0;
      for (const Alike& alike : at(chunk.module, position)) {
        const HeldElements held = held_elements(parameters(module, alike.layer), {.tensor = tp});
        sum.trained += held.trained * alike.count;
        sum.frozen += held.frozen * alike.count;
        layers += alike.count;
      }
      known->second[position] = {sum.trained / layers, sum.frozen / layers};
    }
  }
  const Counts counts = count(chunk, {});
  HeldElements total;
  for (std::size_t position = 0; position < kPositions; ++position) {
    total.trained += known->second[position].trained * counts[position];
    total.frozen += known->second[position].frozen * counts[position];
  }
  return total;
}

}  // namespace polyphony
