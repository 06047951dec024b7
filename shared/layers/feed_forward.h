// A block's dense feed-forward part of width F: a matrix up, with a gate beside it or without, an
// activation, and a matrix down.
//   parameters  gate_up [2F, H] with gate and up rows interleaved, or fc1 [F, H]; down or fc2 [H, F]
//   gates       silu, gelu (Gemma's form, by tanh) and GPT-OSS' clamped one (Activation): what is kept is
//               the same, what they read and write is gate_passes()
//   tape        its input (where the module trains or adapts), the activation's inputs and, then
//               too, its output: e·T·(2 or, gated, 3)·F/t
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

// Reads and writes of a gate's [rows, F] values, and launches.
struct GatePasses {
  int forward, forward_launches, backward, backward_launches;
};
GatePasses gate_passes(Activation activation, KernelForm form);

// What a part of width `ffn` keeps without its input.
std::int64_t activation_bytes(const LayerBytes& bytes, std::int64_t ffn, bool gated);

}  // namespace polyphony
