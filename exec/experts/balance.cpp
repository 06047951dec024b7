#include "exec/experts/balance.h"

#include "exec/experts/routing.h"

namespace polyphony::exec {

using torch::Tensor;

Tensor balance_counts(const BalancePlan& plan, const Tensor& sample, const Tensor& chosen,
                      std::int64_t experts) {
  const Tensor places = sample.mul(experts).unsqueeze(1).add(chosen).flatten();
  return at::zeros({plan.samples * experts}, places.options())
      .index_add_(0, places, at::ones_like(places))
      .view({plan.samples, experts});
}

// d loss / d p_te = scale · E f_e / T_s = scale · E · count_se / (k T_s²), then through p.
Tensor balance_gradient(const BalancePlan& plan, const Tensor& sample, const Tensor& logits,
                        const Tensor& counts, std::int64_t per_token) {
  const Tensor tokens = plan.tokens.clamp_min(1).to(logits.dtype()).unsqueeze(1);
  const double scale =
      plan.scale * static_cast<double>(logits.size(1)) / static_cast<double>(per_token);
  const Tensor by_sample = counts.to(logits.dtype()).div_(tokens.square()).mul_(scale);
  return probabilities(logits, plan.scores).gradient(by_sample.index_select(0, sample));
}

}  // namespace polyphony::exec
