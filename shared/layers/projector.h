// Projectors (LayerKind projector_mlp and projector_linear). They concatenate merge² neighboring
// patches, or `merge` frames, into one row, then apply two matrices with GELU between them, or one
// matrix. T output rows.
//   parameters          MLP: fc1 [hidden, in] split by rows and fc2 [out, hidden] split by columns.
//                       Linear: fc [out, in], replicated
//   saved activations   MLP: e·(q·in + T·2·hidden/t), frozen e·T·hidden/t. Linear: e·q·in, frozen 0
// Source: own count of what exec/ does.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

class Projector : public LayerKernels {
 protected:
  explicit Projector(const LayerKernels& layer) : LayerKernels(layer) {}
  void list_order();
  void join_rows();
  // Input rows, before they are merged.
  std::int64_t source_rows() const { return size_.tokens * merged_rows(module_); }
  std::int64_t source_width() const { return module_.projector_in / merged_rows(module_); }
};

class MlpProjector : public Projector {
 public:
  explicit MlpProjector(const LayerKernels& layer) : Projector(layer) {}
  static void parameters(LayerParameters add);
  void forward();
  void backward_input(bool);
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t input_kept(const LayerBytes& bytes);

 private:
  Linear in() const;
  Linear out() const;
};

class LinearProjector : public Projector {
 public:
  explicit LinearProjector(const LayerKernels& layer) : Projector(layer) {}
  static void parameters(LayerParameters add);
  void forward();
  void backward_input(bool);
  void backward_weight() { weight_gradient(whole()); }
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t input_kept(const LayerBytes& bytes);

 private:
  // Merging combines rows of different ranks.
  bool joins_rows() const { return sequence() && merged_rows(module_) > 1; }
  Linear whole() const;
};

}  // namespace polyphony
