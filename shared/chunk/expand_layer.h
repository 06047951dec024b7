// What one layer adds to the expansion of its chunk (shared/chunk/expand.h): the parts that expand()
// joins, for callers that price equal layers once.
//   The first layer of a chunk has, besides its own kernels, those of rows that edges bring it, and
//   what its blocks read across; in the backward the first trained layer stops where nothing before
//   it needs a gradient. Source: own count.
#pragma once

#include "shared/chunk/expand.h"

namespace polyphony {

// Of layer `layer` in `chunk`. The layers' parts in order (backward: in reverse) are expand()'s.
Expansion expand_layer(const Module& module, LayerRange chunk, int layer, Phase phase,
                       const WorkSize& size, const ChunkContext& context);
// What a backward op of the chunk does in the layer.
struct BackwardParts {
  bool input = false;           // its input part, were it but to reach the layer's own weights
  bool input_gradient = false;  // where `input`: something before it wants the gradient
  bool weight = false;
  Recompute again = Recompute::none;
};
BackwardParts backward_parts(const Module& module, LayerRange chunk, int layer, Phase phase,
                             const ChunkContext& context);
// The end of the run of layers of the chunk, from `layer` on, that expand to the same, what edges
// bring included.
int end_of_alike(const Module& module, LayerRange chunk, int layer, const WorkSize& size,
                 const ChunkContext& context);

}  // namespace polyphony
