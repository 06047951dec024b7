// Element-wise passes that an unfused framework has in a transformer block and this project's
// executor has not: each matrix' bias added to what it made, dropout behind attention and behind the
// feed-forward part. Per rank, after the tensor-parallel cut; experts have neither.
//   forward   a bias: its rows read and written; dropout: read, written, a mask of a byte
//   backward  a bias: its gradient's rows read once; dropout: as forward
// Source: own count of Megatron-LM's layers with bias_activation_fusion and bias_dropout_fusion off.
#pragma once

#include "shared/chunk/expand.h"

namespace polyphony {

// Null kernel (no bytes) of other layers and phases. Weight gradients: none.
Kernel unfused_passes(const Module& module, LayerKind layer, Phase phase, const WorkSize& size,
                      const ChunkContext& context, bool dropout);

}  // namespace polyphony
