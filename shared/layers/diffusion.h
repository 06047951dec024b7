// The layers of a diffusion module (exec/layers/diffusion.h): the embedding of latent patches of p
// features, blocks with modulation, and the head with the flow-matching loss. n items.
//   parameters          latent_embedding [H, p]. Block: norms have no weights; its modulation has
//                       six parts; qkv, out, fc1 and fc2 with biases; cross-attention if the module
//                       is conditioned. Head: output [p, H] and a modulation of two parts
//   saved activations   latent embedding: e·q·p if it trains.
//                       Block: those of a block with LayerNorms, e·q·2H of the branches before
//                       their gates (if these train), n·(e·(6H + 2R) + 2·adaptive), with R the
//                       modulation's width (2R if it trains), and those of cross-attention.
//                       Head: e·q·2H + 2·w·q + n·(e·(2H + 2R) + adaptive) + w·q·p, the last term
//                       for the loss; in bf16 without 2H. `adaptive`: Modulated::adaptive_bytes()
// Source: DiT, arXiv 2212.09748; own count of what exec/ does.
#pragma once

#include "shared/layers/modulation.h"

namespace polyphony {

class LatentEmbedding : public LayerKernels {
 public:
  explicit LatentEmbedding(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters add);
  void forward();
  void backward_input(bool) {}  // latents have no gradient
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t input_kept(const LayerBytes&) { return 0; }

 private:
  Linear in() const;
};

class DiffusionBlock : public Modulated {
 public:
  explicit DiffusionBlock(const LayerKernels& layer) : Modulated(layer) {}
  static void parameters(LayerParameters add);
  void forward();
  void backward_input(bool attention_again);
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t input_kept(const LayerBytes& bytes);
};

class DiffusionHead : public Modulated {
 public:
  explicit DiffusionHead(const LayerKernels& layer) : Modulated(layer) {}
  static void parameters(LayerParameters add);
  void forward();
  void backward_input(bool);
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t input_kept(const LayerBytes& bytes) { return bytes.input(); }

 private:
  Linear out() const;
};

}  // namespace polyphony
