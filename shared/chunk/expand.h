// Expands a compute op into its kernels and collectives (shared/kernels/expansion.h), and derives
// the context of a chunk from a layout.
#pragma once

#include "shared/kernels/expansion.h"

namespace polyphony {

// Returns the kernels and collectives, in order, that one rank runs for this phase of a chunk.
Expansion expand(const Module& module, LayerRange layers, Phase phase, const WorkSize& size,
                 const ChunkContext& context);
// Returns what the backward pass recomputes of the layer at a position of the stack: full, its
// whole forward pass with all collectives; selective, its attention. Only blocks are recomputed.
Recompute recompute_of(LayerKind kind, int position, Recompute recompute, LayerRange recomputed);
// Returns the stack positions that ModuleLayout::recompute_blocks names; kAllLayers if it is empty.
LayerRange recomputed_layers(const ModuleLayout& layout);
// Returns how a chunk that begins with layer `begin` runs under a layout. Needs no Program.
ChunkContext chunk_context(const Model& model, ModuleId module, int begin,
                           const ModuleLayout& layout, NumberFormat precision);

// Returns the sum of the kernels' FLOPs. Used to balance stages and to count model FLOPs.
Flops total_flops(const Expansion& expansion);

}  // namespace polyphony
