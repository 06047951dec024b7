// Layers of a module that is described by measured times only (shared/model/model.h). A block has
// its parameters, split evenly over the tensor-parallel ranks, and saves `kept` bytes of
// activations per token, its input included; with recomputation, only the input. There are no
// kernels: times come from the profile (shared/hardware/measured_layers.h).
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

class AbstractEnd : public LayerKernels {
 public:
  explicit AbstractEnd(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters) {}
  void forward() {}
  void backward_input(bool) {}
  void backward_weight() {}
  static std::int64_t tape(const LayerBytes&) { return 0; }
  static std::int64_t input_kept(const LayerBytes&) { return 0; }
};

class AbstractBlock : public AbstractEnd {
 public:
  explicit AbstractBlock(const LayerKernels& layer) : AbstractEnd(layer) {}
  static void parameters(LayerParameters add) {
    add.matrix("weight", add.module().abstract.parameters, 1, Cut::rows).role = Role::none;
  }
  static std::int64_t tape(const LayerBytes& bytes) {
    const std::int64_t kept = bytes.module.abstract.kept * bytes.size.tokens;
    return bytes.recompute == Recompute::full ? std::min(kept, bytes.input()) : kept;
  }
  static std::int64_t input_kept(const LayerBytes& bytes) {
    return std::min(tape(bytes), bytes.input());
  }
};

}  // namespace polyphony
