#include "shared/screen/stage_memory.h"

#include <algorithm>
#include <optional>

#include "shared/chunk/sizes.h"
#include "shared/layers/layer_table.h"
#include "shared/plan/cut_by_blocks.h"
#include "shared/work/row_shares.h"
#include "shared/work/rows.h"

namespace polyphony {

StageMemories::StageMemories(const StackLayers& layers, const SoftwareStack& stack)
    : layers_(layers), stack_(stack), parameters_(layers) {
  const Model& model = layers.scenario().model;
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    visited_.push_back(needs_backward(model, ModuleId(m)));
    inputs_trained_.push_back(needs_input_grad(model, ModuleId(m)));
  }
}

StageMemories::Held StageMemories::held(ModuleId id, const LayerCut& cut,
                                        const WorkSize& size) const {
  const Model& model = layers_.scenario().model;
  const Module& module = layers_.module(id);
  const std::int64_t element = size_of(layers_.scenario().training.precision).value;
  const auto rows_of = [&](std::int64_t rows) {
    return element * (cut.sp ? RowShares{rows, cut.tp}.count(0) : rows);
  };
  Held held;
  Flows& flows = held.flows;
  const int stack = layers_.size(id);
  flows.inside = rows_of(rows_leaving(module, 1, size)) * module.hidden;
  const bool ends = module.kind == ModuleKind::language || module.kind == ModuleKind::diffusion;
  flows.out = ends ? 0 : rows_of(rows_leaving(module, stack, size)) * output_width(module);
  for (const Edge& edge : model.edges) {
    if (edge.to != id || edge.to_layer > 0) continue;
    const Module& source = model.modules[edge.from.value];
    if (module.kind == ModuleKind::language)  // of all its edges together
      flows.in = rows_of(size.tokens - size.text_tokens) * module.hidden;
    else if (module.kind == ModuleKind::diffusion)
      flows.condition_in += rows_of(size.condition) * source.hidden;
    else
      flows.in += rows_of(size.tokens * merged_rows(module)) * source.hidden;
  }
  const auto range_of = [](int begin, int end) {
    return LayerRange{static_cast<std::uint16_t>(begin), static_cast<std::uint16_t>(end)};
  };
  const ChunkContext anywhere = layers_.context_at(id, StackLayers::kFirst, cut);
  flows.condition = conditioning_in_tape(module, range_of(0, stack), size, anywhere).value;
  flows.condition_weights =
      conditioning_for_weights(module, range_of(0, stack), size, anywhere).value;
  flows.condition_kept = cut.sp ? 0 : flows.condition;
  for (std::size_t position = 0; position < layers_.positions(id); ++position) {
    Layer& of = held.layers.emplace_back();
    if (position == StackLayers::kLast && stack == 1) continue;
    const ChunkContext context = layers_.context_at(id, position, cut);
    const LayerRange layer = layers_.at(id, position);
    const bool reads = reads_conditioning(module, layer);
    const std::int64_t conditioning = reads ? flows.condition : 0;
    const std::int64_t input = input_in_tape(module, layer, size, context).value;
    of.input = input - (cut.sp ? 0 : conditioning);
    if (of_another_stack()) {
      const ChunkHeld alone = chunk_held(stack_, module, layer, size, context);
      of.tape = alone.tape.value;
      of.forward = alone.forward.value;
      of.loss = alone.loss.value;
      of.rebuilt = alone.backward.value;
    } else {
      of.tape = tape_bytes(module, layer, size, context).value - conditioning;
      of.rebuilt = workspace_bytes(module, layer, size, context).value;
    }
    of.weights = held_for_weights(module, layer, size, context).value -
                 (reads ? flows.condition_weights : 0);
    of.made = made_for_weights(module, layer, size, context).value;
  }
  if (module.tied && stack > 1) {  // a chunk with both ends has the matrix once
    const ChunkContext context = layers_.context_at(id, StackLayers::kFirst, cut);
    const auto weights = [&](LayerRange range) {
      return held_for_weights(module, range, size, context).value;
    };
    held.tied = weights(range_of(0, stack - 1)) + weights(range_of(stack - 1, stack)) -
                weights(range_of(0, stack));
  }
  return held;
}

const std::vector<StageMemories::Held>& StageMemories::tapes(const LayoutView& view,
                                                             std::size_t branch, ModuleId id,
                                                             bool shared) {
  const BranchLoad& load = *view.branches[branch].load;
  const LayerCut cut(view.layout->modules[id.value]);
  key_ = {load.id, static_cast<int>(id.value), shared ? 1 : 0};
  cut.add_to(key_);
  return tapes_.get(key_, [&] {
    const ModuleLoad& of = load.modules[id.value];
    std::vector<Held> kinds;
    if (shared) {
      kinds.push_back(held(id, cut, of.smallest));
    } else {
      for (const WorkSize& size : of.sizes) kinds.push_back(held(id, cut, size));
    }
    return kinds;
  });
}

StageMemories::Chunk StageMemories::chunk(const Held& held, ModuleId id, LayerRange range,
                                          const StackLayers::Counts& counts,
                                          LayerRange again) const {
  Chunk chunk;
  chunk.visited = visited_[id.value];
  const bool first = range.begin == 0, last = range.end == layers_.size(id);
  const Flows& flows = held.flows;
  chunk.in = (first ? flows.in : flows.inside) + flows.condition_in;
  chunk.out = last ? flows.out : flows.inside;
  if (!chunk.visited) return chunk;
  std::int64_t input = -1;
  bool blocks = false;
  for (std::size_t p = 0; p < held.layers.size(); ++p) {
    if (counts[p] == 0) continue;
    const Layer& layer = held.layers[p];
    chunk.tape += layer.tape * counts[p];
    chunk.weights += layer.weights * counts[p];
    chunk.rebuilt = std::max(chunk.rebuilt, layer.rebuilt);
    if (p != StackLayers::kLast || !first || held.tied == 0)  // else the first layer's
      chunk.made = std::max(chunk.made, layer.made);
    // The input of its first layer: that of the module, or that of a block. The inputs of all
    // blocks are equal, except of a block at which a backward may stop.
    if (p == StackLayers::kFirst || (input < 0 && p != StackLayers::kLast)) input = layer.input;
    blocks = blocks || p >= StackLayers::kBlocks;
  }
  if (first) input = held.layers[StackLayers::kFirst].input;
  if (first && last) chunk.weights -= held.tied;
  if (input < 0) input = held.layers[StackLayers::kLast].input;
  if (of_another_stack()) add_besides(held, id, range, counts, again, chunk);
  if (blocks) {
    chunk.tape += (of_another_stack() ? 0 : flows.condition) - flows.condition_kept;
    chunk.weights += flows.condition_weights;
  }
  chunk.tape = std::max<std::int64_t>(0, chunk.tape - input);
  chunk.both = std::min(chunk.weights, chunk.tape);
  chunk.tape += chunk.in;
  chunk.back = first ? (inputs_trained_[id.value] ? flows.in : 0) : flows.inside;
  return chunk;
}

// Adds the peak temporary memory of a layer, over what the layers before it have saved, less what
// the layers behind it will save: of the first layer, the last block and the last layer.
void StageMemories::add_besides(const Held& held, ModuleId id, LayerRange range,
                                const StackLayers::Counts& counts, LayerRange again,
                                Chunk& chunk) const {
  chunk.forward = chunk.loss = chunk.rebuilt = 0;
  const auto look = [&](std::size_t position, std::int64_t behind) {
    chunk.forward = std::max(chunk.forward, held.layers[position].forward - behind);
    chunk.loss = std::max(chunk.loss, held.layers[position].loss - behind);
    chunk.rebuilt = std::max(chunk.rebuilt, held.layers[position].rebuilt - behind);
  };
  const bool first = counts[StackLayers::kFirst] > 0, last = counts[StackLayers::kLast] > 0;
  if (first) look(StackLayers::kFirst, chunk.tape - held.layers[StackLayers::kFirst].tape);
  if (last) look(StackLayers::kLast, 0);
  const int block = range.end - 1 - (last ? 1 : 0);
  if (block >= range.begin + (first ? 1 : 0))
    look(layers_.position_of(id, block, again), last ? held.layers[StackLayers::kLast].tape : 0);
}

void StageMemories::start(const LayoutView& view) {
  found_.assign(visited_.size(), {});
  for (std::size_t m = 0; m < found_.size(); ++m)
    found_[m].again = recomputed_range(view.layout->modules[m]);
}

bool StageMemories::alike(const LayoutView& view, StageOfBranch a, StageOfBranch b) const {
  if (a.branch != b.branch) return false;
  const std::vector<StageRuns>& stages = *view.branches[a.branch].stages;
  return std::equal(stages[a.stage].begin(), stages[a.stage].end(), stages[b.stage].begin(),
                    stages[b.stage].end(), [&](const LayerRun& one, const LayerRun& other) {
                      return layers_.alike(one, other, found_[one.module.value].again);
                    });
}

void StageMemories::memory(const LayoutView& view, StageOfBranch stage, bool shared,
                           StageMemory& memory) {
  const BranchView& branch = view.branches[stage.branch];
  const std::size_t kinds = shared ? 1 : branch.load->counts.size();
  memory.works.resize(kinds);
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    if (kind == 0) states_.clear();
    chunks_.clear();
    for (const LayerRun& run : (*branch.stages)[stage.stage]) {
      const ModuleLayout& layout = view.layout->modules[run.module.value];
      Found& found = found_[run.module.value];
      if (found.tapes[shared] == nullptr) {
        found.tapes[shared] = &tapes(view, stage.branch, run.module, shared);
        found.elements = &parameters_.of(run.module, layout);
      }
      const Held& held = (*found.tapes[shared])[kind];
      std::optional<StackLayers::Counts> before;  // of the chunk before, mostly the same
      layers_.each_chunk(run, cut_by_blocks(layout.shard), [&](LayerRange range) {
        const StackLayers::Counts counts = layers_.count({run.module, range}, found.again);
        const bool same = before == counts;
        chunks_.push_back(same ? chunks_.back()
                               : chunk(held, run.module, range, counts, found.again));
        // Of offloaded activations, only the inputs are certain to be resident.
        if (Chunk& made = chunks_.back(); layout.offload_activations && made.visited)
          made.tape = made.in, made.both = 0;
        chunks_.back().goes_on = range.end < run.layers.end;
        if (kind == 0)
          states_.push_back(same ? states_.back()
                                 : state(*found.elements, *branch.grid, layout.shard, counts));
        before = counts;
      });
    }
    if (kind == 0) {
      memory.fixed = {};
      for (const State& state : states_) memory.fixed += state.held;
    }
    memory.works[kind] = work(branch.load->alike);
  }
}

// An action visits chunks in their order, a backward in reverse. Counts what of its own work
// still, or already, exists.
WorkMemory StageMemories::work(bool in_step) const {
  WorkMemory work;
  bool known[4] = {};
  const auto grow = [&](ActionKind kind, Bytes bytes) {
    const auto k = static_cast<std::size_t>(kind);
    work.transient[k] = known[k] ? std::max(work.transient[k], bytes) : bytes;
    known[k] = true;
  };
  // Of chunks behind the running one: their saved activations; what their weight parts wait with,
  // and the part of it that was within the saved activations. Of chunks before it: what their
  // weight parts will wait with in addition.
  std::int64_t tapes_behind = 0, weights_behind = 0, both_behind = 0, before = 0;
  for (const Chunk& chunk : chunks_) {
    work.tape += Bytes(chunk.tape);
    work.weights += Bytes(chunk.weights);
    work.both += Bytes(chunk.both);
    before += chunk.weights - chunk.both;
  }
  for (std::size_t c = chunks_.size(); c-- > 0;) {
    const Chunk& one = chunks_[c];
    const State& state = states_[c];
    const bool last = c + 1 == chunks_.size();
    const Bytes behind = !one.goes_on || !in_step ? Bytes(0) : states_[c + 1].whole;
    const Bytes ahead = last || !in_step ? Bytes(0) : states_[c + 1].gathered;
    const std::int64_t in = one.visited ? 0 : one.in;  // else counted with the saved activations
    before -= one.weights - one.both;
    grow(ActionKind::forward,
         Bytes(in + one.out + one.forward - tapes_behind) + state.gathered + ahead);
    if (one.visited) {
      const Bytes rows = Bytes(one.out + one.back) + state.gathered;
      const Bytes most = std::max(Bytes(one.rebuilt) + state.whole, Bytes(one.loss));
      grow(ActionKind::backward, rows + most + behind - Bytes(tapes_behind));
      grow(ActionKind::backward_input, rows + Bytes(std::max({one.rebuilt, one.loss, one.made})) -
                                           Bytes(tapes_behind - both_behind + before));
    }
    grow(ActionKind::backward_weight, state.gathered + state.whole - Bytes(weights_behind));
    tapes_behind += one.tape;
    weights_behind += one.weights;
    both_behind += one.both;
  }
  return work;
}

}  // namespace polyphony
