#include "exec/experts/routing.h"

#include <algorithm>
#include <limits>

namespace polyphony::exec {

using torch::Tensor;

namespace {

// Gradient of normalized shares: removes from d its mean weighted by the shares.
Tensor without_mean(const Tensor& d, const Tensor& shares) {
  return at::sub(d, at::mul(shares, d).sum(1, /*keepdim=*/true));
}

Tensor normed(const Tensor& scores) { return scores.div(scores.sum(1, /*keepdim=*/true)); }

// Returns σ of each logit, or the softmax of each row.
Tensor scores_of(const Tensor& logits, RouterScores kind) {
  return kind == RouterScores::sigmoid ? logits.sigmoid() : logits.softmax(1);
}

// Returns the values with those of experts in groups that a token does not choose set to −∞.
Tensor in_chosen_groups(const Tensor& logits, const Tensor& scores, const Module& module) {
  const std::int64_t rows = logits.size(0), groups = module.expert_groups,
                     each = logits.size(1) / groups;
  const Tensor best =
      std::get<0>(scores.view({rows, groups, each}).topk(std::min<std::int64_t>(2, each), 2));
  Tensor left_out = at::ones({rows, groups}, logits.options().dtype(torch::kBool));
  left_out.scatter_(1, choose(best.sum(2), module.groups_per_token), false);
  return logits.view({rows, groups, each})
      .masked_fill(left_out.unsqueeze(2), -std::numeric_limits<double>::infinity())
      .view({rows, groups * each});
}

}  // namespace

Tensor choose(const Tensor& logits, std::int64_t k) {
  const auto sorted = at::sort(logits, /*stable=*/true, /*dim=*/1, /*descending=*/true);
  return std::get<1>(sorted).narrow(1, 0, k).contiguous();
}

Tensor choose(const Tensor& logits, const Module& module, const Tensor& constants) {
  if (module.expert_groups == 0 && !constants.defined())
    return choose(logits, module.experts_per_token);
  Tensor scores = scores_of(logits, module.router_scores);
  if (constants.defined()) scores += constants;
  const Tensor& by = constants.defined() ? scores : logits;
  return choose(module.expert_groups > 0 ? in_chosen_groups(by, scores, module) : by,
                module.experts_per_token);
}

Tensor chosen_scores(const Tensor& logits, const Tensor& chosen, RouterScores kind) {
  return scores_of(logits.gather(1, chosen), kind);
}

Tensor routing_weights(const Tensor& scores, const Module& module) {
  const Tensor p = module.router_scores == RouterScores::sigmoid ? normed(scores) : scores;
  return module.routed_scale == 1 ? p : p.mul(module.routed_scale);
}

Tensor chosen_gradient(const Tensor& d_weights, const Tensor& scores, const Module& module) {
  const Tensor d = module.routed_scale == 1 ? d_weights : d_weights.mul(module.routed_scale);
  if (module.router_scores == RouterScores::softmax) return without_mean(d, scores).mul_(scores);
  const Tensor p = normed(scores);  // dp/dl = p (1 − s) for its own share
  return without_mean(d, p).mul_(p).mul_(at::rsub(scores, 1));
}

Tensor Probabilities::gradient(const Tensor& d_p) const {
  const Tensor d = at::mul(d_p, p);
  Tensor left = d.sub(p.mul(d.sum(1, /*keepdim=*/true)));
  return rest.defined() ? left.mul_(rest) : left;
}

Probabilities probabilities(const Tensor& logits, RouterScores kind) {
  if (kind == RouterScores::softmax) return {logits.softmax(1), {}};
  const Tensor scores = at::sigmoid(logits);
  return {normed(scores), at::rsub(scores, 1)};
}

}  // namespace polyphony::exec
