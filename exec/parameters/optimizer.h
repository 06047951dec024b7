// The hyperparameters of AdamW. One step (exec/parameters/held_parameters.h) computes:
//   m ← β1 m + (1−β1) g        v ← β2 v + (1−β2) g²        t counts from 1
//   w ← w (1 − rate·decay) − rate · (m / (1−β1ᵗ)) / (√(v / (1−β2ᵗ)) + ε)
//   g is the gradient times the clip factor; `decay` applies to the parameters marked for it
//   (matrices).
// Source: Loshchilov and Hutter, arXiv 1711.05101, algorithm 2;
// the rate multiplies the decay, as in PyTorch.
#pragma once

namespace polyphony::exec {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
};

}  // namespace polyphony::exec
