// Layers of a module that is known by measured times alone (shared/model/model.h): a block has its
// parameters, cut evenly over the tensor-parallel ranks, and its tape of `kept` bytes a token, its
// input included; recomputed, the input alone. No kernels: its times are the profile's
// (shared/hardware/measured_layers.h).
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
