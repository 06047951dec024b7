// A transformer block (encoder_block, decoder_block): norm, one kind of attention, residual sum;
// norm, one kind of feed-forward part, residual sum. block_at() states which kinds. With
// Module::post_norms the output of both parts is normalized as well, before the residual sum; with
// Module::layer_scale it is multiplied by a vector.
//   saved activations   those of its two norms, e·q·H and statistics each (w·q, LayerNorm 2·w·q),
//                       and of its parts; post_norms add one more norm per part, trained scales
//                       the outputs of both parts, e·q·H each. A first block whose input needs no
//                       gradient and whose norms do not train omits norm1.
//                       Full recomputation: the block's input and the routing to experts.
//                       Selective recomputation: without what attention computes from q, k and v.
// Source: own count of what exec/ does.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

// Functions of one kind of attention or of feed-forward part; block_part() returns them.
struct BlockPart {
  void (*parameters)(LayerParameters& add);
  void (*forward)(const LayerKernels& layer);
  // `again`: run the attention's forward again first (selective recomputation).
  void (*backward_input)(const LayerKernels& layer, bool again);
  void (*backward_weight)(const LayerKernels& layer);
  std::int64_t (*tape)(const LayerBytes& bytes);              // bytes of saved activations
  std::int64_t (*recomputed_bytes)(const LayerBytes& bytes);  // of these, what selective recomputes
  // Attention: bytes received again from other ranks during the backward pass.
  std::int64_t (*received_again_bytes)(const LayerBytes& bytes);
  // Experts: bytes that full recomputation keeps in addition to the block's input.
  std::int64_t (*choices)(const LayerBytes& bytes);
  // Returns why a layout cannot run it; empty if it can.
  std::string (*refused)(const Module& module, const ModuleLayout& layout);
};
const BlockPart& block_part(AttentionKind kind);
const BlockPart& block_part(FeedForwardKind kind);

class Block : public LayerKernels {
 public:
  explicit Block(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters add);
  void forward();
  void backward_input(bool attention_again);
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t input_kept(const LayerBytes& bytes) {
    return bytes.context.added_edges == 0 && !bytes.starts ? bytes.input() : 0;
  }
  // Bytes of the saved inputs and statistics of the block's two norms.
  static std::int64_t norms(const LayerBytes& bytes) {
    return (bytes.starts ? 1 : 2) *
           (bytes.input() + bytes.statistics(bytes.own(bytes.size.tokens)));
  }

 private:
  void adapt_output();
  void adapt_output_backward();
};

}  // namespace polyphony
