// The forward pass of tests/exec/reference/reference.h: one sample through whole weights by name.
//   Simple operators: torch::linear, torch::conv1d, torch::softmax over a dense mask, head by
//   head. Weights are named as in shared/chunk/parameters.h; qkv rows are laid out per key/value
//   head.
#pragma once

#include "tests/exec/reference/reference.h"

namespace polyphony::exec::testing {

// What attention may see, and the rotary angles.
struct Attend {
  torch::Tensor mask;   // [T, T]: 0, or −∞ where a row must not attend
  torch::Tensor angle;  // [T, D/2]; undefined: no rotation
  double turned = 1;    // factor of what is rotated: Module::rope_attention
};

class SampleModel {
 public:
  SampleModel(const Model& model, const Tensors& values) : model_(model), values_(values) {}

  // [labels, V]
  torch::Tensor logits(const Sample& sample, const SampleContent& content);
  // Output of the blocks for the last sample: [T, H].
  const torch::Tensor& hidden() const { return hidden_; }
  // Balance loss of the last sample: mean over the layers, weighted.
  const torch::Tensor& balance() const { return balance_; }

 private:
  using Tensor = torch::Tensor;
  // reference_language.cpp
  Tensor sequence(const Module& language, const Sample& sample, const SampleContent& content);
  Tensor add_features(int layer, const Sample& sample, const SampleContent& content, Tensor x);
  Tensor text_angle(const Module& language, const Sample& sample, int width, double base,
                    bool stretches) const;
  struct RowKind {
    int item = 0;
    Modality modality = Modality::text;
    int document = 0;
    bool unlabelled = true;  // true while no label has been seen
  };
  std::vector<RowKind> row_kinds(const Sample& sample) const;
  static bool sees(const Module& m, const std::vector<RowKind>& rows, std::int64_t i,
                   std::int64_t k, std::int64_t window);
  Attend attend_of(const Module& language, const Sample& sample, int block,
                   std::int64_t tokens) const;
  std::int64_t sequence_rows(const Item& item) const;
  const Module* find(ModuleKind kind) const;
  const Module* projector_of(ModuleKind source) const;
  // reference_encoders.cpp: an item's rows of the language sequence
  // For an image: after all layers of the encoder, or after those up to `last`.
  Tensor image_rows(const Tensor& image, const Module* projector, int last = -1);
  Tensor clip_rows(const Tensor& frames);
  Tensor project(const Module& projector, const Tensor& joined) const;
  // reference_block.cpp
  const Tensor& at(const std::string& name) const { return values_.at(name); }
  bool has(const std::string& name) const { return values_.count(name) > 0; }
  Tensor linear(const std::string& name, const Tensor& x) const;
  Tensor norm(const Module& m, const std::string& name, const Tensor& x) const;
  // One result for each element of `attend`, from `first` on.
  Tensor blocks(const Module& m, Tensor x, const std::vector<Attend>& attend, int first = 0);
  Tensor attention(const Module& m, const std::string& block, const Tensor& x,
                   const Attend& attend) const;
  Tensor latent_attention(const Module& m, const std::string& block, const Tensor& x,
                          const Attend& attend) const;
  Tensor short_convolution(const Module& m, const std::string& block, const Tensor& x) const;
  Tensor delta_rule(const Module& m, const std::string& block, const Tensor& x) const;
  Tensor feed_forward(const Module& m, const std::string& block, const Tensor& x);

  const Model& model_;
  const Tensors& values_;
  Tensor hidden_, balance_;
};

}  // namespace polyphony::exec::testing
