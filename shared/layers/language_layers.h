// The first and last layers of a language module: the token embedding, and the head, which is the
// final norm, the output matrix and the cross-entropy loss. L rows with a label, V vocabulary.
//   parameters          embedding [V, H]; head norm and output [V, H]. Embedding and output are
//                       split by rows of the vocabulary. A tied output matrix has the embedding's
//                       name; a chunk with the head alone has a copy of it
//   saved activations   embedding: none. Head: e·L·2H (of ⌈L/t⌉ rows under sequence parallelism;
//                       frozen and LoRA: H), one norm, and w·L·V/t of probabilities
// Source: own count of what exec/ does.
#pragma once

#include "shared/kernels/layer_bytes.h"
#include "shared/kernels/layer_kernels.h"
#include "shared/kernels/layer_parameters.h"

namespace polyphony {

class TokenEmbedding : public LayerKernels {
 public:
  explicit TokenEmbedding(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters add);
  void forward();
  void backward_input(bool);
  void backward_weight();
  static std::int64_t tape(const LayerBytes&) { return 0; }
  static std::int64_t input_kept(const LayerBytes&) { return 0; }

 private:
  bool is_text() const { return size_.text_tokens == size_.tokens; }
  void own_forward();
};

class LanguageHead : public LayerKernels {
 public:
  explicit LanguageHead(const LayerKernels& layer) : LayerKernels(layer) {}
  static void parameters(LayerParameters add);
  void forward();
  void backward_input(bool);
  void backward_weight();
  static std::int64_t tape(const LayerBytes& bytes);
  static std::int64_t input_kept(const LayerBytes&) { return 0; }

 private:
  Linear vocabulary() const;
  void plain_loss();
};

}  // namespace polyphony
