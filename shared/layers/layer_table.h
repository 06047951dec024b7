// The table of layer kinds, one row per kind: everything that the rest of shared/ needs to know
// about a layer because of its kind. The functions of a row are defined in the kind's own pair of
// files. A kind without a row, or a row without one of its functions, does not compile.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

// Where a layer stands in its stack. An input layer must be in the same pipeline stage as the next
// layer, and a tail layer in the same stage as the previous one.
enum class LayerPlace : std::uint8_t { input, block, tail };

struct LayerRow {
  LayerKind kind;
  const char* name;
  // A block can be recomputed and adapted by LoRA, is counted by `blocks`, and is called
  // "<module>.block0", "<module>.block1", …
  LayerPlace place;
  bool reads_conditioning;  // reads the rows that a diffusion module receives over model edges
  void (*parameters)(LayerParameters add);
  // These add kernels and inner collectives.
  void (*forward)(const LayerKernels& layer);
  void (*backward_input)(const LayerKernels& layer, bool attention_again);
  void (*backward_weight)(const LayerKernels& layer);
  // These return bytes on one rank.
  std::int64_t (*tape)(const LayerBytes& bytes);        // saved activations of a forward pass
  std::int64_t (*input_kept)(const LayerBytes& bytes);  // of these, the input, of a first layer
  std::int64_t (*recomputed_bytes)(const LayerBytes& bytes);  // of these, what selective recomputes
  // Received again from other ranks for the backward pass.
  std::int64_t (*received_again_bytes)(const LayerBytes& bytes);
};

const LayerRow& layer_row(LayerKind kind);
bool is_block(LayerKind kind);
// Returns whether the range has blocks that read a diffusion module's conditioning rows.
bool reads_conditioning(const Module& module, LayerRange range);

}  // namespace polyphony
