#include "exec/layers/balance.h"

#include <numeric>

#include "exec/layers/routing.h"
#include "exec/on_device.h"
#include "shared/error.h"

namespace polyphony::exec {

using torch::Tensor;

BalancePlan plan_balance(const Module& module, const WorkInput& data, int context_index) {
  if (module.balance_weight == 0) return {};
  BalancePlan plan;
  plan.scores = module.router_scores;
  plan.scale = module.balance_weight * data.balance_scale / module.layers;
  plan.samples = static_cast<std::int64_t>(data.lengths.size());
  Tensor tokens, sample;
  if (!data.context_samples.defined()) {
    tokens = torch::tensor(data.lengths, torch::kInt64);
    sample = at::repeat_interleave(tokens);
  } else {
    const auto mine = data.context_rows.begin() + context_index;
    tokens = at::bincount(data.context_samples, {}, plan.samples);
    sample = data.context_samples.narrow(
        0, std::accumulate(data.context_rows.begin(), mine, std::int64_t{0}), *mine);
  }
  plan.tokens = on_device(tokens, data.positions.device());
  plan.sample = on_device(sample, data.positions.device());
  POLYPHONY_CHECK(
      plan.tokens.numel() == plan.samples && plan.sample.numel() == data.positions.size(-1),
      plan.samples << " samples, " << plan.tokens.numel() << " in the sequence; "
                   << plan.sample.numel() << " rows, " << data.positions.numel());
  return plan;
}

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
