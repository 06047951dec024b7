// Kernels that an op of exec/ runs once before the first layer of a chunk with blocks
// (exec/frame/sequence_plans.cpp): they build the lists of sequences for the attention kernel and
// the cosines and sines of rotary embeddings, shared by all blocks of the chunk.
// Source: own count of what exec/ does.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"

namespace polyphony {

class ChunkTables : public LayerKernels {
 public:
  explicit ChunkTables(const LayerKernels& layer) : LayerKernels(layer) {}
  void forward();

 private:
  void rotation(std::int64_t rows, int axes);
};

}  // namespace polyphony
