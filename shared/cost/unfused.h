// Elementwise kernels that a framework without kernel fusion runs in a transformer block, and that
// the executor of this project does not run: adding the bias of each matrix to its output, and
// dropout after the attention and after the feed-forward layer. Experts have neither. Sizes are per
// rank, with tensor parallelism applied.
//   forward   bias: rows are read and written; dropout: rows are read and written, and a mask of
//             one byte per element is written
//   backward  bias: the rows of the gradient are read once; dropout: as forward
// Source: own count of Megatron-LM's layers without bias_activation_fusion and bias_dropout_fusion.
#pragma once

#include "shared/chunk/expand.h"

namespace polyphony {

// Returns the kernel of one block; one without bytes for other layers and for the weight-gradient
// phase.
Kernel unfused_passes(const Module& module, LayerKind layer, Phase phase, const WorkSize& size,
                      const ChunkContext& context, bool dropout);

}  // namespace polyphony
