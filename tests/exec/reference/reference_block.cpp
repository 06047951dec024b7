// The transformer block of tests/exec/reference/reference_model.h, said as plainly as possible.
#include <algorithm>
#include <cmath>

#include "tests/exec/reference/reference_experts.h"
#include "tests/exec/reference/reference_model.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

// torch.nn.LayerNorm's default, and CLIP's; "rms_norm_eps" of Llama 2's config.json.
constexpr double kEpsilon = 1e-5;

Tensor unit_mean_square(const Tensor& x) {
  return x / torch::sqrt(x.pow(2).mean(-1, true) + kEpsilon);
}

// Elements i and i + D/2 are turned by angle i.
Tensor rotate(const Tensor& x, const Tensor& angle) {
  if (!angle.defined()) return x;
  const std::int64_t half = x.size(1) / 2;
  const Tensor low = x.narrow(1, 0, half), high = x.narrow(1, half, half);
  return torch::cat(
      {low * angle.cos() - high * angle.sin(), high * angle.cos() + low * angle.sin()}, 1);
}

}  // namespace

Tensor SampleModel::linear(const std::string& name, const Tensor& x) const {
  const Tensor y =
      torch::linear(x, at(name + ".weight"), has(name + ".bias") ? at(name + ".bias") : Tensor());
  if (!has(name + ".lora_a")) return y;
  const Module& m = *std::find_if(model_.modules.begin(), model_.modules.end(),
                                  [&](const Module& e) { return name.starts_with(e.name + "."); });
  return y + m.lora_alpha / m.lora_rank *
                 torch::linear(torch::linear(x, at(name + ".lora_a")), at(name + ".lora_b"));
}

Tensor SampleModel::norm(const Module& m, const std::string& name, const Tensor& x) const {
  if (m.norm == Norm::rms) return unit_mean_square(x) * at(name + ".weight");
  return torch::layer_norm(x, {x.size(-1)}, at(name + ".weight"), at(name + ".bias"), kEpsilon);
}

Tensor SampleModel::blocks(const Module& m, Tensor x, const std::vector<Attend>& attend,
                           int first) {
  for (std::size_t i = 0; i < attend.size(); ++i) {
    const std::string block = m.name + ".block" + std::to_string(first + static_cast<int>(i)) + ".";
    const Tensor normed = norm(m, block + "norm1", x);
    x = x + (m.key_value_rank > 0 ? latent_attention(m, block, normed, attend[i])
                                  : attention(m, block, normed, attend[i]));
    x = x + feed_forward(m, block, norm(m, block + "norm2", x));
  }
  return x;
}

Tensor SampleModel::feed_forward(const Module& m, const std::string& block, const Tensor& x) {
  if (m.experts > 0) {
    const auto [y, balance] = reference_experts(m, values_, block, x);
    balance_ = balance_ + m.balance_weight / m.layers * balance;
    return y;
  }
  if (!m.gated) return linear(block + "fc2", torch::gelu(linear(block + "fc1", x)));
  const Tensor gate_up = linear(block + "gate_up", x);
  const Tensor gate = gate_up.slice(1, 0, c10::nullopt, 2),
               up = gate_up.slice(1, 1, c10::nullopt, 2);
  return linear(block + "down", gate * torch::sigmoid(gate) * up);
}

Tensor SampleModel::attention(const Module& m, const std::string& block, const Tensor& x,
                              const Attend& attend) const {
  const std::int64_t group = m.heads / m.kv_heads, width = m.head_dim;
  const Tensor qkv = linear(block + "qkv", x);
  const auto head = [&](std::int64_t index) { return qkv.narrow(1, index * width, width); };
  const auto ready = [&](std::int64_t index, const char* norm_name) {
    Tensor h = head(index);
    if (m.qk_norm) h = unit_mean_square(h) * at(block + norm_name);
    return rotate(h, attend.angle);
  };
  std::vector<Tensor> outputs;
  for (std::int64_t k = 0; k < m.kv_heads; ++k) {
    const std::int64_t first = k * (group + 2);  // its query heads, then the key, then the value
    const Tensor key = ready(first + group, "k_norm.weight");
    for (std::int64_t g = 0; g < group; ++g) {
      const Tensor query = ready(first + g, "q_norm.weight");
      const Tensor scores =
          query.matmul(key.t()) / std::sqrt(static_cast<double>(width)) + attend.mask;
      outputs.push_back(torch::softmax(scores, 1).matmul(head(first + group + 1)));
    }
  }
  return linear(block + "out", torch::cat(outputs, 1));
}

// DeepSeek-V2, arXiv 2405.04434, equations 9 to 19, head by head.
Tensor SampleModel::latent_attention(const Module& m, const std::string& block, const Tensor& x,
                                     const Attend& attend) const {
  const std::int64_t plain = m.head_dim, rotated = m.rotary_dim, value = value_width(m);
  Tensor from = x;
  if (m.query_rank > 0)
    from = unit_mean_square(linear(block + "q_down", x)) * at(block + "q_down_norm.weight");
  const Tensor queries = linear(block + "q_up", from);
  const Tensor joint = linear(block + "kv_down", x);
  const Tensor shared = rotate(joint.narrow(1, m.key_value_rank, rotated), attend.angle);
  const Tensor latent =
      unit_mean_square(joint.narrow(1, 0, m.key_value_rank)) * at(block + "kv_down_norm.weight");
  const Tensor pairs = linear(block + "kv_up", latent);
  std::vector<Tensor> outputs;
  for (std::int64_t h = 0; h < m.heads; ++h) {
    const Tensor query = queries.narrow(1, h * (plain + rotated), plain + rotated);
    const Tensor key = pairs.narrow(1, h * (plain + value), plain);
    const Tensor scores =
        query.narrow(1, 0, plain).matmul(key.t()) +
        rotate(query.narrow(1, plain, rotated), attend.angle).matmul(shared.t());
    outputs.push_back(
        torch::softmax(scores / std::sqrt(static_cast<double>(plain + rotated)) + attend.mask, 1)
            .matmul(pairs.narrow(1, h * (plain + value) + plain, value)));
  }
  return linear(block + "out", torch::cat(outputs, 1));
}

}  // namespace polyphony::exec::testing
