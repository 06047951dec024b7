// The first and last layers of encoders: patches or frames to rows, and the norm that their rows
// leave by.
//   patch_embedding  one product of channels·patch² features a patch, a table of positions (unless
//                    rotary), a class token's row before each image's where there is one
//   audio_embedding  two convolutions over three frames, as products with rows of three frames; the
//                    second halves them. A rank's own tokens may need one frame of the token before
//   encoder_norm     class tokens leave; own rows of what stays are others
//   tape   patch embedding nothing; audio embedding e·q·6(bins + H): rows of 3 frames for 2q and q
//          outputs, as many activation inputs, frozen 0; encoder norm e·q·H and its statistics
// Patches and frames are the batch's. Source: own count of what exec/ does.
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
  static std::int64_t tape(const LayerBytes&) { return 0; }
  static std::int64_t input_kept(const LayerBytes&) { return 0; }

 private:
  // Rows that leave: patches and class tokens.
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
  static void parameters(LayerParameters add) { add.norm("norm"); }
  void forward();
  void backward_input(bool);
  void backward_weight() { norm_weights(1); }
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t input_kept(const LayerBytes& bytes) {
    return bytes.module.class_token ? 0 : bytes.input();
  }

 private:
  std::int64_t embedded_rows() const { return rows_leaving(module_, 1, size_); }
};

}  // namespace polyphony
