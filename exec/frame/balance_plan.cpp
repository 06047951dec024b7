#include "exec/frame/balance_plan.h"

#include <numeric>

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

}  // namespace polyphony::exec
