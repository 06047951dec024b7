// A transformer block (encoder_block, decoder_block): rows are normed, meet by one of the kinds of
// attention, are added; normed, pass one of the kinds of feed-forward part, are added. Which ones,
// block_at() says. With Module::post_norms what either part adds is normed too.
//   tape   two norms, e·q·H and statistics each (w·q, LayerNorm 2·w·q), and its parts'; a norm more
//          for each part under post_norms. A first block that nothing trained feeds has no norm1.
//          Recomputed: full, its input and the choice of experts; selective, without what attention
//          makes of q, k and v
// Source: own count of what exec/ does.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

// One row a kind of attention, or of feed-forward part: what a block is made of.
struct BlockPart {
  void (*parameters)(LayerParameters& add);
  void (*forward)(const LayerKernels& layer);
  // `again`: attention's is run again, as selective recomputation asks.
  void (*backward_input)(const LayerKernels& layer, bool again);
  void (*backward_weight)(const LayerKernels& layer);
  std::int64_t (*tape)(const LayerBytes& bytes);
  std::int64_t (*again_bytes)(const LayerBytes& bytes);  // of the tape: what is made again
  std::int64_t (*brought_bytes)(
      const LayerBytes& bytes);                      // attention: other ranks', in the backward
  std::int64_t (*choices)(const LayerBytes& bytes);  // what full recomputation keeps, too
  // Why a grid cannot run it; empty: it can.
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
  // Inputs and statistics of its two norms.
  static std::int64_t norms(const LayerBytes& bytes) {
    return (bytes.starts ? 1 : 2) *
           (bytes.input() + bytes.statistics(bytes.own(bytes.size.tokens)));
  }

 private:
  void post_norm();
  void post_norm_backward();
};

}  // namespace polyphony
