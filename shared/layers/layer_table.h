// The kinds of layers, a row each: all that the rest of shared/ asks of a layer by its kind. What a row
// names stands in the kind's own file pair; a kind without a row, or a row without one of its
// functions, does not compile.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

// Where a layer stands in its stack: an input clings to the layer after it, a tail to the one before.
enum class LayerPlace : std::uint8_t { input, block, tail };

struct LayerRow {
  LayerKind kind;
  const char* name;
  // A block can be recomputed and adapted by LoRA, is counted by `blocks`, and is called
  // "<module>.block0", "<module>.block1", …
  LayerPlace place;
  bool reads_conditioning;  // the rows that edges bring a diffusion module
  void (*parameters)(LayerParameters add);
  // Kernels and inner collectives.
  void (*forward)(const LayerKernels& layer);
  void (*backward_input)(const LayerKernels& layer, bool attention_again);
  void (*backward_weight)(const LayerKernels& layer);
  // Bytes that a forward keeps; of them the layer's input, as it arrived, where it is the first of a
  // chunk; what selective recomputation makes again; what the backward brings from other ranks again.
  std::int64_t (*tape)(const LayerBytes& bytes);
  std::int64_t (*input_kept)(const LayerBytes& bytes);
  std::int64_t (*again_bytes)(const LayerBytes& bytes);
  std::int64_t (*brought_bytes)(const LayerBytes& bytes);
};

const LayerRow& layer_row(LayerKind kind);
bool is_block(LayerKind kind);
// Whether the range has blocks that read what conditions a diffusion module.
bool reads_conditioning(const Module& module, LayerRange range);

}  // namespace polyphony
