// AdamW as one fused call over whole parameters: the reference for sharded and flat parameters.
#pragma once

#include <utility>
#include <vector>

#include "exec/parameters/init.h"
#include "exec/parameters/optimizer.h"

namespace polyphony::exec::testing {

class FusedAdamW {
 public:
  // Takes the trainable ones (those with a gradient); they must outlive it and keep their tensors.
  FusedAdamW(const std::vector<LocalParameter*>& parameters, const AdamWOptions& options)
      : options_(options) {
    for (LocalParameter* parameter : parameters)
      if (parameter->grad.defined())
        held_.push_back(
            {parameter, torch::zeros_like(parameter->value), torch::zeros_like(parameter->value)});
  }

  // One step, then the gradients are zero. `clip` multiplies every gradient first.
  void step(double rate, double clip) {
    const torch::NoGradGuard no_grad;
    steps_.fill_(++count_);
    for (const bool decays : {true, false}) {
      std::vector<torch::Tensor> values, gradients, first, second;
      for (const Held& held : held_) {
        if (held.parameter->spec.decay != decays) continue;
        values.push_back(held.parameter->value);
        gradients.push_back(held.parameter->grad.mul_(clip));
        first.push_back(held.first_moment);
        second.push_back(held.second_moment);
      }
      if (values.empty()) continue;
      const std::vector<torch::Tensor> counters(values.size(), steps_);
      at::_fused_adamw_(values, gradients, first, second, {}, counters, rate, options_.beta1,
                        options_.beta2, decays ? options_.weight_decay : 0.0, options_.epsilon,
                        /*amsgrad=*/false, /*maximize=*/false);
      for (const torch::Tensor& gradient : gradients) gradient.zero_();
    }
  }

 private:
  struct Held {
    LocalParameter* parameter;
    torch::Tensor first_moment, second_moment;
  };
  AdamWOptions options_;
  std::vector<Held> held_;
  torch::Tensor steps_ = torch::zeros({}, torch::kFloat32);  // as the fused kernel wants it
  int count_ = 0;
};

}  // namespace polyphony::exec::testing
