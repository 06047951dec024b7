// Kernels for rows that a chunk receives over model edges, in addition to its main input
// (exec/chunk/edge_rows.h). They are inserted into the language module's hidden states, or read by
// the cross-attention of a diffusion module's blocks.
// Source: own count of what exec/ does.
#pragma once

#include "shared/kernels/layer_kernels.h"

namespace polyphony {

class EdgeKernels : public LayerKernels {
 public:
  explicit EdgeKernels(const LayerKernels& layer) : LayerKernels(layer) {}
  // in() adds the kernels before the chunk's first layer; out() adds those of the rows' gradients,
  // after that layer's backward pass. `reads_conditioning`: the chunk has blocks that read
  // conditioning rows.
  void in(bool reads_conditioning);
  void out(bool reads_conditioning);
};

}  // namespace polyphony
