// The number of parameter elements of a run of layers on one tensor-parallel rank, and which ranks
// divide their state. Source: shared/chunk/parameters.h, summed by kinds of layers.
#pragma once

#include <vector>

#include "shared/chunk/held_sizes.h"
#include "shared/screen/known.h"
#include "shared/screen/stack_layers.h"

namespace polyphony {

// Dense parameters and experts' parameters are separate groups (shared/program/program.h).
struct ChunkElements {
  HeldElements dense, experts;
};
struct LayerParameterCounts {
  std::vector<ChunkElements> layers;  // by position
  std::int64_t copied = 0;            // of the last: shared with the embedding if a chunk has both
  ChunkElements of(const StackLayers::Counts& counts) const;
};

// The layers must outlive it.
class ParameterCounts {
 public:
  explicit ParameterCounts(const StackLayers& layers) : layers_(layers) {}
  const LayerParameterCounts& of(ModuleId module, const ModuleLayout& grid);

 private:
  const StackLayers& layers_;
  MemoTable<LayerParameterCounts> known_;
  Key key_;
};

// Ranks that divide the state of a module's parameters (dense or experts'), seen from a rank of one
// of its stages, and the distance between them (shared/lower/lower_groups.cpp).
struct StateDivision {
  int stride = 1, shards = 1, replicas = 1;
};
StateDivision division_of(const ModuleLayout& grid, Shard shard, bool experts);

}  // namespace polyphony
