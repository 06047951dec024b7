// The part of a chunk's expansion (shared/chunk/expand.h) that one layer contributes, for callers
// that price equal layers only once.
//   The first layer of a chunk includes, besides its own kernels, those that receive rows over
//   model edges and, in a diffusion chunk, those of the conditioning rows. The backward pass stops
//   at the first layer that trains if nothing before it needs a gradient. Source: own count.
#pragma once

#include "shared/chunk/expand.h"

namespace polyphony {

// Returns the expansion of layer `layer` of `chunk`. Concatenated over the layers in order
// (backward: in reverse order) this is what expand() returns.
Expansion expand_layer(const Module& module, LayerRange chunk, int layer, Phase phase,
                       const WorkSize& size, const ChunkContext& context);
// What a backward op of the chunk computes in one layer.
struct BackwardParts {
  bool input = false;           // propagates gradients through the layer, at least to its weights
  bool input_gradient = false;  // if `input`: also computes the gradient of the layer's input
  bool weight = false;          // computes weight gradients
  Recompute again = Recompute::none;  // what is recomputed first
};
// Returns which parts the backward phase `phase` runs in the layer.
BackwardParts backward_parts(const Module& module, LayerRange chunk, int layer, Phase phase,
                             const ChunkContext& context);
// Returns the end of the run of layers, from `layer` on, that have equal expansions, including rows
// received over model edges.
int end_of_alike(const Module& module, LayerRange chunk, int layer, const WorkSize& size,
                 const ChunkContext& context);

}  // namespace polyphony
