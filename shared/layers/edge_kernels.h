// Rows that edges bring a chunk beside its main input (exec/layers/edge_rows.h): into the language module's
// hidden states, or read across by a diffusion module's blocks.
// Source: own count of what exec/ does.
#pragma once

#include "shared/kernels/layer_kernels.h"

namespace polyphony {

class EdgeKernels : public LayerKernels {
 public:
  explicit EdgeKernels(const LayerKernels& layer) : LayerKernels(layer) {}
  // Before the chunk's first layer; after it in the backward, their gradients. `reads_conditioning`:
  // the chunk has blocks that read across.
  void in(bool reads_conditioning);
  void out(bool reads_conditioning);
};

}  // namespace polyphony
