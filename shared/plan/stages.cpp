#include "shared/plan/stages.h"

#include <algorithm>

#include "shared/layers/layer_table.h"
#include "shared/plan/cut_by_blocks.h"
#include "shared/plan/links.h"

namespace polyphony {
namespace {

// The smallest part that a pipeline stage can take: one block with the layers that must share its
// stage (embeddings with the block after them; the final norm, projectors and head with the block
// before).
struct Unit {
  std::vector<Chunk> chunks;  // one layer each
  double cost = 0;
  // Bytes that the previous stage sends if a stage begins with this unit, and whether gradients
  // return.
  Bytes sent{};
  bool returned = false;
};

bool is_input(LayerKind kind) { return layer_row(kind).place == LayerPlace::input; }

Chunk one_layer(ModuleId module, int layer) {
  return {module, {static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(layer + 1)}};
}

// Ends of a chain that are units of their own: the layers before its first block, and those behind
// its last one. Otherwise they belong to these blocks.
struct LoneEnds {
  bool first = false, last = false;
};

// Returns Chain::hop: what `hop` says of the ranks of two stages, and of the bytes `sent` to a
// unit. It asks once for each pair of ranks and kind of unit, of which there are few.
std::function<Hop(int, int)> remembered(const HopTimes& hop,
                                        const std::vector<std::pair<Bytes, bool>>& sent,
                                        const ModuleLayout& grid, const std::vector<int>& ranks) {
  std::vector<std::pair<Bytes, bool>> kinds;
  std::vector<std::size_t> kind_of;
  for (const auto& each : sent) {
    const auto found = std::find(kinds.begin(), kinds.end(), each);
    kind_of.push_back(static_cast<std::size_t>(found - kinds.begin()));
    if (found == kinds.end()) kinds.push_back(each);
  }
  std::vector<std::pair<int, int>> links;
  std::vector<std::size_t> link_of{0};
  for (std::size_t s = 1; s < ranks.size(); ++s) {
    const std::pair<int, int> link{ranks[s - 1], ranks[s]};
    const auto found = std::find(links.begin(), links.end(), link);
    link_of.push_back(static_cast<std::size_t>(found - links.begin()));
    if (found == links.end()) links.push_back(link);
  }
  std::vector<Hop> hops;
  for (const auto& [from, to] : links)
    for (const auto& [bytes, returned] : kinds)
      hops.push_back(hop(grid, from, to, bytes, returned));
  return [hops = std::move(hops), kind_of = std::move(kind_of), link_of = std::move(link_of),
          count = kinds.size()](int stage, int begin) {
    return hops[link_of[static_cast<std::size_t>(stage)] * count +
                kind_of[static_cast<std::size_t>(begin)]];
  };
}

// Cuts the modules of a branch into units, one for each block, and joins units into stages. Without
// `costs`, units cost 0.
class Units {
 public:
  Units(const Model& model, const Layout& layout, const LayerCosts& costs,
        const std::vector<ModuleId>& modules, LoneEnds ends = {})
      : model_(model), layout_(layout), costs_(costs) {
    for (const ModuleId id : modules)
      add_module(id, {ends.first && id == modules.front(), ends.last && id == modules.back()});
  }

  std::size_t size() const { return units_.size(); }

  // Returns the chain of the units. It does not refer to this object.
  Chain chain(const Splitting& by, const ModuleLayout& grid, const std::vector<int>& ranks) const {
    Chain chain;
    std::vector<std::pair<Bytes, bool>> sent;
    for (const Unit& unit : units_) {
      chain.costs.push_back(unit.cost);
      sent.emplace_back(unit.sent, unit.returned);
    }
    if (layout_.balance == Balance::unaware) return chain;
    if (by.hop) chain.hop = remembered(by.hop, sent, grid, ranks);
    if (by.lacks)
      chain.lacks = [lacks = by.lacks, first = units_.front().chunks.front().module](
                        const std::vector<int>& sizes, int stage) {
        return lacks(first, sizes, stage);
      };
    return chain;
  }

  Stage join(std::size_t begin, std::size_t end) const {
    Stage stage;
    for (std::size_t u = begin; u < end; ++u)
      for (const Chunk& chunk : units_[u].chunks) {
        const bool goes_on = !stage.chunks.empty() && stage.chunks.back().module == chunk.module &&
                             stage.chunks.back().layers.end == chunk.layers.begin;
        if (goes_on && !is_cut(chunk.module, chunk.layers.begin, &chunk == &units_[u].chunks[0]))
          stage.chunks.back().layers.end = chunk.layers.end;
        else
          stage.chunks.push_back(chunk);
      }
    return stage;
  }

 private:
  void add_module(ModuleId id, LoneEnds ends) {
    const std::vector<LayerKind> stack = layers(model_.modules[id.value]);
    bool after_input = false, after_block = false;
    for (int layer = 0; layer < static_cast<int>(stack.size()); ++layer) {
      const LayerKind kind = stack[static_cast<std::size_t>(layer)];
      const bool opens = is_input(kind) || (is_block(kind) && (!after_input || ends.first)) ||
                         (ends.last && after_block && !is_block(kind));
      if (opens || units_.empty()) open(one_layer(id, layer));
      after_input = is_input(kind);
      after_block = is_block(kind);
      add_layer(id, layer);
      add_projectors(id, layer);
    }
  }

  // Adds a unit that begins with `first`.
  void open(const Chunk& first) {
    Unit unit;
    if (!units_.empty())
      for (const Chunk& before : units_.back().chunks)
        if (!costs_.empty() && feeds(before, first)) {
          unit.sent += cost(before).sent;
          unit.returned = unit.returned || needs_backward(model_, before.module);
        }
    units_.push_back(std::move(unit));
  }

  void add_layer(ModuleId id, int layer) {
    const Chunk& chunk = units_.back().chunks.emplace_back(one_layer(id, layer));
    if (costs_.empty()) return;
    const LayerCost& of = cost(chunk);
    const Seconds counted = layout_.balance == Balance::aware ? of.total() : of.forward;
    units_.back().cost += counted.count();
  }

  const LayerCost& cost(const Chunk& layer) const {
    return costs_.at(layer.module.value).at(layer.layers.begin);
  }

  // Returns whether the output of `before` is an input of `after`; both are chunks of one layer.
  bool feeds(const Chunk& before, const Chunk& after) const {
    if (before.module == after.module) return before.layers.end == after.layers.begin;
    return after.layers.begin == 0 &&
           std::any_of(model_.edges.begin(), model_.edges.end(), [&](const Edge& edge) {
             return edge.from == before.module && edge.to == after.module && edge.to_layer == 0 &&
                    edge_end(model_, edge) == before.layers.end;
           });
  }

  // Adds the projectors that read the output of `layer` of `source`.
  void add_projectors(ModuleId source, int layer) {
    for (const Edge& edge : model_.edges) {
      if (edge.from != source || edge_end(model_, edge) != layer + 1 ||
          model_.modules[edge.to.value].kind != ModuleKind::projector)
        continue;
      add_layer(edge.to, 0);
    }
  }

  // Returns whether a chunk must end before this layer.
  bool is_cut(ModuleId module, int layer, bool unit_begins) const {
    if (unit_begins && cut_by_blocks(layout_.modules[module.value].shard)) return true;
    return std::any_of(model_.edges.begin(), model_.edges.end(), [&](const Edge& edge) {
      return (edge.to == module && edge.to_layer == layer) ||
             (edge.from == module && edge_end(model_, edge) == layer);
    });
  }

  const Model& model_;
  const Layout& layout_;
  const LayerCosts& costs_;
  std::vector<Unit> units_;
};

// Returns, by stage, the first rank that has a forward of it. check_actions() reports stages that
// no rank or several ranks have.
std::vector<int> ranks_of(const std::vector<Actions>& actions, int stages) {
  std::vector<int> ranks(static_cast<std::size_t>(stages), -1);
  for (std::size_t rank = 0; rank < actions.size(); ++rank)
    for (const Action& action : actions[rank]) {
      if (!is_forward(action) || action.stage >= stages) continue;
      int& of = ranks[action.stage];
      if (of < 0) of = static_cast<int>(rank);
    }
  for (int& rank : ranks) rank = std::max(rank, 0);
  return ranks;
}

}  // namespace

std::vector<int> ranks_of_stages(const Layout& layout, const ModuleLayout& grid, bool language) {
  const int stages = grid.pp * grid.vpp;
  if (language && !layout.actions.empty()) return ranks_of(layout.actions, stages);
  const Schedule& own = schedule(layout.schedule);
  const Schedule& of = language ? own : schedule(own.following);
  std::vector<int> ranks;
  for (int s = 0; s < stages; ++s) ranks.push_back(of.place({grid.pp, grid.vpp}, s));
  return ranks;
}

Chain chain_of(const Model& model, const Layout& layout, const Splitting& by,
               const std::vector<ModuleId>& modules, const ModuleLayout& grid,
               const std::vector<int>& ranks) {
  return Units(model, layout, by.layers, modules).chain(by, grid, ranks);
}

std::vector<Stage> make_stages(const Model& model, const Layout& layout, const Splitting& by,
                               const std::vector<ModuleId>& modules, ModuleLayout& grid,
                               const std::vector<int>& ranks) {
  const bool listed = grid.blocks.size() > 1;
  const LoneEnds ends{listed && grid.blocks.front() == 0, listed && grid.blocks.back() == 0};
  const Units units(model, layout, by.layers, modules, ends);
  if (grid.blocks.empty()) grid.blocks = partition_ranks(units.chain(by, grid, ranks), ranks);
  std::vector<int> sizes = grid.blocks;  // in units
  if (ends.first) sizes.front() = 1;
  if (ends.last) sizes.back() = 1;
  std::vector<Stage> made;
  std::size_t next = 0;
  for (const int size : sizes) {
    const std::size_t end = next + static_cast<std::size_t>(size);
    POLYPHONY_CHECK(end <= units.size(), end << " blocks asked for");
    made.push_back(units.join(next, end));
    next = end;
  }
  POLYPHONY_CHECK(next == units.size(), next << " of " << units.size() << " blocks placed");
  return made;
}

}  // namespace polyphony
