// The first and last layers of encoders: embeddings of patches or audio frames, and the final norm.
//   patch_embedding  one GEMM with channels·patch² features per patch, a position table (unless
//                    rotary), a class-token row before each image's rows if there is one, and a
//                    norm if the module has an input norm
//   audio_embedding  two convolutions over three frames, computed as GEMMs on rows of three frames;
//                    the second halves the number of rows. A rank may need one frame of the token
//                    before its own
//   encoder_norm     also removes class tokens, so a rank's own rows change; no norm if the module
//                    has no final norm
//   saved activations   patch embedding: none, or the input of its norm if that is trained. Audio
//                       embedding: e·q·6(bins + H), for rows of 3 frames with 2q and q outputs and
//                       as many activation inputs; 0 if frozen. Encoder norm: e·q·H and its
//                       statistics
// Patches and frames belong to the batch and do not count. Source: own count of what exec/ does.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

class PatchEmbedding : public LayerKernels {
 public:
  explicit PatchEmbedding(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters add);
  void forward();
  void backward_input(bool);
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t input_kept(const LayerBytes&) { return 0; }

 private:
  // Output rows: patches and class tokens.
  std::int64_t embedded_rows() const { return rows_leaving(module_, 1, size_); }
  Linear patches() const;
  bool picks_positions() const;
};

class AudioEmbedding : public LayerKernels {
 public:
  explicit AudioEmbedding(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters add);
  void forward();
  void backward_input(bool);
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t input_kept(const LayerBytes&) { return 0; }

 private:
  Linear conv1() const;
  Linear conv2() const;
};

class EncoderNorm : public LayerKernels {
 public:
  explicit EncoderNorm(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters add) {
    if (add.module().final_norm) add.norm("norm");
  }
  void forward();
  void backward_input(bool);
  void backward_weight() {
    if (module_.final_norm) norm_weights(1);
  }
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t input_kept(const LayerBytes& bytes) {
    return bytes.module.class_token || !bytes.module.final_norm ? 0 : bytes.input();
  }

 private:
  std::int64_t embedded_rows() const { return rows_leaving(module_, 1, size_); }
};

}  // namespace polyphony
