#include "exec/parameters/optimizer.h"

#include <utility>

#include "shared/error.h"

namespace polyphony::exec {

AdamW::AdamW(std::vector<LocalParameter*> parameters, const AdamWOptions& options)
    : options_(options), step_counter_(torch::zeros({}, torch::kFloat32)) {
  for (LocalParameter* parameter : parameters) {
    if (!parameter->grad.defined()) continue;
    parameters_.push_back(parameter);
    state_.push_back({parameter->spec.name, torch::zeros_like(parameter->value),
                      torch::zeros_like(parameter->value)});
  }
  if (!parameters_.empty()) step_counter_ = step_counter_.to(parameters_.front()->value.device());
}

void AdamW::set_steps(std::int64_t steps) {
  steps_ = steps;
  step_counter_.fill_(steps);
}

void AdamW::step(double rate, double clip) {
  const torch::NoGradGuard no_grad;
  set_steps(steps_ + 1);
  for (const bool decays : {true, false}) {
    std::vector<torch::Tensor> values, grads, first, second;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i]->spec.decay != decays) continue;
      values.push_back(parameters_[i]->value);
      grads.push_back(parameters_[i]->grad);
      first.push_back(state_[i].first_moment);
      second.push_back(state_[i].second_moment);
      if (clip != 1.0) grads.back().mul_(clip);
    }
    if (values.empty()) continue;
    const std::vector<torch::Tensor> counters(values.size(), step_counter_);
    at::_fused_adamw_(values, grads, first, second, {}, counters, rate, options_.beta1,
                      options_.beta2, decays ? options_.weight_decay : 0.0, options_.epsilon,
                      /*amsgrad=*/false, /*maximize=*/false);
    for (torch::Tensor& grad : grads) grad.zero_();
  }
}

double squared_norm(const std::vector<LocalParameter>& parameters, const ShardIndex& shard) {
  double total = 0;
  for (const LocalParameter& parameter : parameters) {
    if (!parameter.grad.defined()) continue;
    const std::vector<Interval> owned = parameter.spec.owned_parts(shard);
    if (owned.empty()) continue;
    torch::Tensor counted = parameter.grad;
    if (owned !=
        parameter.spec.parts(shard))  // owned parts come first (shared/layers/parameters.h)
      counted = counted.narrow(parameter.spec.cut_dimension(), 0, owned.front().size());
    const torch::Tensor flat = counted.reshape({-1});
    total += at::dot(flat, flat).item<double>();
  }
  return total;
}

void zero_gradients(std::vector<LocalParameter>& parameters) {
  for (LocalParameter& parameter : parameters) {
    if (parameter.grad.defined()) parameter.grad.zero_();
  }
}

}  // namespace polyphony::exec
