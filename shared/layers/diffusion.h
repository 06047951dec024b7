// The layers of a diffusion module (exec/layers/diffusion.h): latents' patches of p features to rows,
// blocks under a modulation, and the head with the flow-matching loss. n items.
//   parameters  latent_embedding [H, p]; a block without norms' weights: its modulation's six parts,
//               qkv, out and fc1, fc2 with biases, cross-attention where something conditions it;
//               head output [p, H] and a modulation of two parts
//   tape        latent embedding e·q·p where it trains; block: that of a block of LayerNorms, e·q·2H
//               of the branches behind gates (when these train), n·(e·(6H + 2R) + 2·adaptive), R the
//               modulation's width (2R when it trains), across; head e·q·2H + 2·w·q + n·(e·(2H + 2R)
//               + adaptive) + w·q·p, the loss' difference; bf16 without 2H
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
