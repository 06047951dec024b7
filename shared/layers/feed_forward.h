// A block's dense feed-forward part of width F: an up matrix, with or without a gate, an
// activation, and a down matrix.
//   parameters          gate_up [2F, H] with gate and up rows interleaved, or fc1 [F, H]; down or
//                       fc2 [H, F]
//   gates               silu, gelu (Gemma's tanh form) and the clamped gate of GPT-OSS
//                       (Activation). All save the same activations; gate_passes() has their reads
//                       and writes.
//   saved activations   its input and the activation's output (both only if the module trains or
//                       adapts), and the activation's inputs: e·T·(2 or, gated, 3)·F/t
// Source: Shazeer, arXiv 2002.05202 (gates); own count of what exec/ does.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

class FeedForward : public LayerKernels {
 public:
  explicit FeedForward(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters& add);
  void forward();
  void backward_input();
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);

 private:
  std::int64_t ffn() const { return module_.ffn / context_.tp; }
  Linear in() const;
  Linear out() const;
};

// Reads and writes of [rows, F] arrays that a gated activation makes, and its launches.
struct GatePasses {
  int forward, forward_launches, backward, backward_launches;
};
GatePasses gate_passes(Activation activation, KernelForm form);

// Returns the bytes that a feed-forward part of width `ffn` saves, without its input.
std::int64_t activation_bytes(const LayerBytes& bytes, std::int64_t ffn, bool gated);

}  // namespace polyphony
