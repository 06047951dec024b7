// AdamW over one rank's parameters, and what gradient clipping needs of them.
//   m ← β1 m + (1−β1) g        v ← β2 v + (1−β2) g²        t counts from 1
//   w ← w (1 − rate·decay) − rate · (m / (1−β1ᵗ)) / (√(v / (1−β2ᵗ)) + ε)
//   g is the gradient times the clip factor; `decay` applies to parameters marked so (matrices).
// State has the parameter's format (fp32 or fp64). Does not model yet: 16-bit parameters with fp32
// masters.
// Source: Loshchilov and Hutter, arXiv 1711.05101, algorithm 2;
// the rate multiplies the decay, as in PyTorch.
#pragma once

#include <string>
#include <vector>

#include "exec/parameters/init.h"

namespace polyphony::exec {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
};

struct AdamWState {
  std::string name;  // of the parameter
  torch::Tensor first_moment, second_moment;
};

class AdamW {
 public:
  // Takes the trainable ones (those with a gradient); they must outlive the optimizer and keep
  // their tensors.
  AdamW(std::vector<LocalParameter*> parameters, const AdamWOptions& options);

  // One step, then the gradients are zero. `clip` multiplies every gradient first.
  void step(double rate, double clip);

  // For checkpoints.
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps);
  std::vector<AdamWState>& state() { return state_; }  // in parameter order

 private:
  AdamWOptions options_;
  std::vector<LocalParameter*> parameters_;
  std::vector<AdamWState> state_;
  torch::Tensor step_counter_;  // float, as the fused kernel wants it
  std::int64_t steps_ = 0;
};

// Σ g² over the elements that `shard` owns (Parameter::owned_parts). NaN and infinities pass on.
double squared_norm(const std::vector<LocalParameter>& parameters, const ShardIndex& shard);
void zero_gradients(std::vector<LocalParameter>& parameters);

}  // namespace polyphony::exec
