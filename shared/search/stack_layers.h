// The different layers of a module's stack, and how many of each a stage holds: enough to sum over
// the stack without visiting it. Remembers parameters by module and tensor-parallel size.
#pragma once

#include <array>
#include <compare>
#include <map>
#include <tuple>
#include <vector>

#include "shared/layers/expand.h"
#include "shared/layers/held_sizes.h"
#include "shared/plan/plan.h"
#include "shared/scenario/scenario.h"

namespace polyphony {

// All of a grid that what one layer costs on one rank depends on: closed forms of layers are
// remembered by it, and are given nothing else.
struct LayerCut {
  explicit LayerCut(const ModuleLayout& grid);
  ModuleLayout grid() const;  // one of those that are cut so
  auto operator<=>(const LayerCut&) const = default;

  int tp, cp, ep, expert_tp, first_rank;
  bool sp;
  Recompute recompute;
};

// The scenario must outlive it.
class StackLayers {
 public:
  enum Position : std::size_t {
    kFirst,
    kBlock,
    kRecomputed,  // a block, too
    kLast,
    kPositions
  };
  using Counts = std::array<int, kPositions>;
  // The layer at a position; of blocks one of each kind, and how many there are: the least of their
  // times is what a bound may count, the mean of their bytes what a stage holds.
  struct Alike {
    LayerRange layer;
    int count = 1;
  };

  explicit StackLayers(const Scenario& scenario);

  const Scenario& scenario() const { return scenario_; }
  const Module& module(ModuleId id) const { return scenario_.model.modules[id.value]; }
  Counts count(const Chunk& chunk, const ModuleLayout& layout) const;
  std::vector<Alike> at(ModuleId module, std::size_t position) const;
  ChunkContext context_at(ModuleId module, std::size_t position, const LayerCut& cut) const;
  HeldElements parameters_of(const Chunk& chunk, int tp);  // of one tensor-parallel rank

 private:
  const Scenario& scenario_;
  std::vector<int> stack_;  // layers by module
  std::map<std::tuple<std::uint32_t, int>, std::array<HeldElements, kPositions>> parameters_;
};

}  // namespace polyphony
