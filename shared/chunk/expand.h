// Expands a compute op into its kernels and collectives (shared/kernels/expansion.h).
#pragma once

#include "shared/kernels/expansion.h"

namespace polyphony {

Expansion expand(const Module& module, LayerRange layers, Phase phase, const WorkSize& size,
                 const ChunkContext& context);
// What a backward runs again of the layer at a position of the stack: full, its forward with all
// collectives; selective, its attention; of blocks only.
Recompute recompute_of(LayerKind kind, int position, Recompute recompute, LayerRange recomputed);
// The positions that ModuleLayout::recompute_blocks names.
LayerRange recomputed_layers(const ModuleLayout& layout);
// The same without a Program: `begin` is the chunk's first layer.
ChunkContext chunk_context(const Model& model, ModuleId module, int begin,
                           const ModuleLayout& layout, NumberFormat precision);

// Totals, for balancing stages and counting model FLOPs.
Flops total_flops(const Expansion& expansion);

}  // namespace polyphony
