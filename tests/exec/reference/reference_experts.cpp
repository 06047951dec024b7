#include "tests/exec/reference/reference_experts.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

// gate_up [2F, H], rows of gate and up in turns; down [H, F].
Tensor feed_forward(const Tensor& x, const Tensor& gate_up, const Tensor& down) {
  const Tensor gate = torch::linear(x, gate_up.slice(0, 0, c10::nullopt, 2)),
               up = torch::linear(x, gate_up.slice(0, 1, c10::nullopt, 2));
  return torch::linear(gate * torch::sigmoid(gate) * up, down);
}

// A weight with its low-rank update.
Tensor adapted(const Module& module, const Tensors& values, const std::string& name) {
  const Tensor& weight = values.at(name + ".weight");
  if (values.count(name + ".lora_a") == 0) return weight;
  return weight + module.lora_alpha / module.lora_rank *
                      values.at(name + ".lora_b").matmul(values.at(name + ".lora_a"));
}

}  // namespace

ReferenceExperts reference_experts(const Module& module, const Tensors& values,
                                   const std::string& block, const Tensor& x) {
  const std::int64_t experts = module.experts;
  const Tensor p = torch::softmax(torch::linear(x, values.at(block + "router.weight")), 1);
  const Tensor mine = p.unsqueeze(2), other = p.unsqueeze(1);  // [T, E, 1], [T, 1, E]
  const Tensor lower = torch::ones({experts, experts}, torch::kBool).tril(-1);
  const Tensor beaten = other.gt(mine).logical_or(other.eq(mine).logical_and(lower)).sum(2);
  const Tensor chosen = beaten.lt(module.experts_per_token).to(p.dtype());
  const Tensor weights = p * chosen / (p * chosen).sum(1, true);
  Tensor y = torch::zeros_like(x);
  for (std::int64_t e = 0; e < experts; ++e) {
    y = y + weights.narrow(1, e, 1) * feed_forward(x,
                                                   values.at(block + "experts.gate_up.weight")[e],
                                                   values.at(block + "experts.down.weight")[e]);
  }
  if (module.shared_ffn > 0)
    y = y + feed_forward(x, adapted(module, values, block + "shared.gate_up"),
                         adapted(module, values, block + "shared.down"));
  if (x.size(0) == 0) return {y, torch::zeros({}, x.options())};
  const auto visits = static_cast<double>(x.size(0) * module.experts_per_token);
  return {y, static_cast<double>(experts) * (chosen.sum(0) / visits * p.mean(0)).sum()};
}

}  // namespace polyphony::exec::testing
