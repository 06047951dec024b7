// A reference for what the executor must compute, written as simply as possible. Used by
// tests/exec/parity/parity.h.
//   Each sample alone and unpadded, whole weights by name, dense attention masks, stock ATen
//   operators, plain autograd, fp64. No code of exec/ computes here; only its data are used:
//   initial values (exec/parameters/init.h) and the content of samples (exec/data/dataset.h).
//   loss = Σ over all labels of −log softmax(logits)[label] ÷ labels of the batch. Gradients are
//   those of this loss and, with experts, of the balance loss.
// Sources: ViT, arXiv 2010.11929 (pre-LayerNorm blocks, exact GELU); Llama 2, arXiv 2307.09288
// (RMSNorm, RoPE, SwiGLU); clipping as torch.nn.utils.clip_grad_norm_; AdamW as torch.optim.AdamW.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "exec/data/dataset.h"
#include "exec/data/latents.h"
#include "shared/scenario/scenario.h"

namespace polyphony::exec::testing {

using Tensors = std::map<std::string, torch::Tensor>;  // whole parameters, by global name

struct ReferenceStep {
  double loss = 0;
  double gradient_norm = 0;  // of all trained parameters, before clipping
  double clip = 1;           // factor by which gradients were multiplied
  Tensors gradients;         // before clipping, of every parameter that trains
  Tensors parameters;        // after the update, all of them
};

// What the model predicts at a labeled position: the most likely id, and the label's loss.
struct Answer {
  std::int64_t id = 0;
  double loss = 0;
};

class Reference {
 public:
  // Perturbed initial values (exec/parameters/init.h), rounded to `start`: the initial state of a
  // run in that format.
  Reference(const Scenario& scenario, torch::Dtype start);

  // `draw`: key of the noise and times of latents.
  ReferenceStep step(const Batch& batch, const Dataset& dataset, double rate, Draw draw = {});
  // Returns the prediction at every labeled position, sample after sample.
  std::vector<Answer> predict(const Sample& sample, const Dataset& dataset) const;

 private:
  torch::Tensor flow_loss(const Sample& sample, const SampleContent& content,
                          const torch::Tensor& hidden, const Tensors& leaves, const Batch& batch,
                          Draw draw) const;

  Model model_;
  Training training_;
  Tensors values_, first_, second_;
  std::set<std::string> trained_, decayed_;
  std::map<std::string, double> factors_;  // of the learning rate
  int steps_ = 0;
};

}  // namespace polyphony::exec::testing
