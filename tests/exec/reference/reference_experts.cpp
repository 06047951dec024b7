#include "tests/exec/reference/reference_experts.h"

#include <cmath>

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

// gate_up [2F, H], rows of gate and up alternating; down [H, F]. Biases may be undefined.
Tensor feed_forward(const Module& module, const Tensor& x, const Tensor& gate_up,
                    const Tensor& down, const Tensor& in_bias = {}, const Tensor& out_bias = {}) {
  const Tensor both = torch::linear(x, gate_up, in_bias);
  return torch::linear(
      reference_gate(module, both.slice(1, 0, c10::nullopt, 2), both.slice(1, 1, c10::nullopt, 2)),
      down, out_bias);
}

// [T, n]: 1 where fewer than `count` others are better.
Tensor best(const Tensor& scores, std::int64_t count) {
  const std::int64_t n = scores.size(1);
  const Tensor mine = scores.unsqueeze(2), other = scores.unsqueeze(1);  // [T, n, 1], [T, 1, n]
  const Tensor lower = torch::ones({n, n}, torch::kBool).tril(-1);
  const Tensor beaten = other.gt(mine).logical_or(other.eq(mine).logical_and(lower)).sum(2);
  return beaten.lt(count).to(scores.dtype());
}

// [T, E]: 1 for the experts that a token is routed to.
Tensor chosen_experts(const Module& module, const Tensor& scores) {
  if (module.expert_groups == 0) return best(scores, module.experts_per_token);
  const std::int64_t each = module.experts / module.expert_groups;
  std::vector<Tensor> sums;
  for (int g = 0; g < module.expert_groups; ++g) {
    const Tensor group = scores.narrow(1, g * each, each);
    sums.push_back((group * best(group, 2)).sum(1, true));
  }
  const Tensor groups = best(torch::cat(sums, 1), module.groups_per_token);
  const Tensor allowed = groups.repeat_interleave(each, 1);
  return best(scores * allowed - (1 - allowed), module.experts_per_token);
}

// A weight with its low-rank update.
Tensor adapted(const Module& module, const Tensors& values, const std::string& name) {
  const Tensor& weight = values.at(name + ".weight");
  if (values.count(name + ".lora_a") == 0) return weight;
  return weight + module.lora_alpha / module.lora_rank *
                      values.at(name + ".lora_b").matmul(values.at(name + ".lora_a"));
}

}  // namespace

Tensor reference_gate(const Module& module, const Tensor& gate, const Tensor& up) {
  switch (module.activation) {
    case Activation::silu:
      return gate * torch::sigmoid(gate) * up;
    case Activation::gelu: {
      const double root = std::sqrt(2 / std::acos(-1.0));
      return 0.5 * gate * (1 + torch::tanh(root * (gate + 0.044715 * gate.pow(3)))) * up;
    }
    case Activation::clamped: {
      const Tensor low = torch::clamp_max(gate, 7), inner = torch::clamp(up, -7, 7);
      return low * torch::sigmoid(1.702 * low) * (inner + 1);
    }
  }
  return {};
}

ReferenceExperts reference_experts(const Module& module, const Tensors& values,
                                   const std::string& block, const Tensor& x) {
  const std::int64_t experts = module.experts;
  const auto bias = [&](const char* name) {
    const auto found = values.find(block + name);
    return found == values.end() ? Tensor() : found->second;
  };
  const Tensor logits = torch::linear(x, values.at(block + "router.weight"), bias("router.bias"));
  const Tensor scores = module.router_scores == RouterScores::sigmoid ? torch::sigmoid(logits)
                                                                      : torch::softmax(logits, 1);
  const Tensor constants = bias("router.choice_bias");
  const Tensor chosen =
      chosen_experts(module, constants.defined() ? (scores + constants).detach() : scores.detach());
  const Tensor weights = module.routed_scale * (scores * chosen) / (scores * chosen).sum(1, true);
  const Tensor in = bias("experts.gate_up.bias"), out = bias("experts.down.bias");
  Tensor y = torch::zeros_like(x);
  for (std::int64_t e = 0; e < experts; ++e) {
    const Tensor said = feed_forward(module, x, values.at(block + "experts.gate_up.weight")[e],
                                     values.at(block + "experts.down.weight")[e],
                                     in.defined() ? in[e] : in, out.defined() ? out[e] : out);
    y = y + weights.narrow(1, e, 1) * said;
  }
  if (module.shared_ffn > 0) {
    const Tensor shared = feed_forward(module, x, adapted(module, values, block + "shared.gate_up"),
                                       adapted(module, values, block + "shared.down"));
    y = y +
        (module.shared_gate
             ? torch::sigmoid(torch::linear(x, values.at(block + "shared.gate.weight"))) * shared
             : shared);
  }
  if (x.size(0) == 0) return {y, torch::zeros({}, x.options())};
  const auto visits = static_cast<double>(x.size(0) * module.experts_per_token);
  const Tensor p = scores / scores.sum(1, true);
  return {y, static_cast<double>(experts) * (chosen.sum(0) / visits * p.mean(0)).sum()};
}

}  // namespace polyphony::exec::testing
