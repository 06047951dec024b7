// What an op of exec/ makes of its work before the first layer of a chunk with blocks (exec/layers/sequence_plans.cpp):
// lists of sequences for the attention kernel, and cosines and sines of rotation, once for all blocks.
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
