// The transformer block of tests/exec/reference/reference_model.h, written as simply as possible.
#include <algorithm>
#include <cmath>

#include "tests/exec/reference/reference_experts.h"
#include "tests/exec/reference/reference_model.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

Tensor unit_mean_square(const Module& m, const Tensor& x) {
  return x / torch::sqrt(x.pow(2).mean(-1, true) + m.norm_epsilon);
}

// Of the rotated elements, i and i + half are rotated by angle i; the elements after them stay.
Tensor rotate(const Tensor& x, const Attend& attend) {
  const Tensor& angle = attend.angle;
  if (!angle.defined()) return x;
  const std::int64_t half = angle.size(1), rest = x.size(1) - 2 * half;
  const Tensor low = x.narrow(1, 0, half), high = x.narrow(1, half, half);
  const Tensor turned = torch::cat(
      {low * angle.cos() - high * angle.sin(), high * angle.cos() + low * angle.sin()}, 1);
  return torch::cat({attend.turned * turned, x.narrow(1, 2 * half, rest)}, 1);
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
  if (m.norm == Norm::rms) return unit_mean_square(m, x) * at(name + ".weight");
  return torch::layer_norm(x, {x.size(-1)}, at(name + ".weight"), at(name + ".bias"),
                           m.norm_epsilon);
}

Tensor SampleModel::blocks(const Module& m, Tensor x, const std::vector<Attend>& attend,
                           int first) {
  for (std::size_t i = 0; i < attend.size(); ++i) {
    const std::string block = m.name + ".block" + std::to_string(first + static_cast<int>(i)) + ".";
    const Tensor normed = norm(m, block + "norm1", x);
    const AttentionKind kind = block_at(m, first + static_cast<int>(i)).attention;
    const auto added = [&](const std::string& number, const Tensor& y) {
      if (m.layer_scale != 0) return at(block + "scale" + number + ".weight") * y;
      return m.post_norms ? norm(m, block + "post_norm" + number, y) : y;
    };
    const Tensor met =
        (kind == AttentionKind::latent        ? latent_attention(m, block, normed, attend[i])
         : kind == AttentionKind::linear      ? delta_rule(m, block, normed)
         : kind == AttentionKind::convolution ? short_convolution(m, block, normed)
                                              : attention(m, block, normed, attend[i]));
    x = x + added("1", met);
    x = x + added("2", feed_forward(m, block, norm(m, block + "norm2", x)));
  }
  return x;
}

Tensor SampleModel::feed_forward(const Module& m, const std::string& block, const Tensor& x) {
  if (has(block + "router.weight")) {
    const auto [y, balance] = reference_experts(m, values_, block, x);
    balance_ = balance_ + m.balance_weight / m.layers * balance;
    return y;
  }
  if (!m.gated) {
    const Tensor inner = linear(block + "fc1", x);
    return linear(block + "fc2", m.gelu == Gelu::quick
                                     ? inner * torch::sigmoid(1.702 * inner)
                                     : torch::gelu(inner, m.gelu == Gelu::tanh ? "tanh" : "none"));
  }
  const Tensor gate_up = linear(block + "gate_up", x);
  const Tensor gate = gate_up.slice(1, 0, c10::nullopt, 2),
               up = gate_up.slice(1, 1, c10::nullopt, 2);
  return linear(block + "down", reference_gate(m, gate, up));
}

Tensor SampleModel::attention(const Module& m, const std::string& block, const Tensor& x,
                              const Attend& attend) const {
  const std::int64_t group = m.heads / m.kv_heads, width = m.head_dim;
  const Tensor qkv = linear(block + "qkv", x);
  const auto head = [&](std::int64_t index) { return qkv.narrow(1, index * width, width); };
  const auto ready = [&](std::int64_t index, const char* norm_name) {
    Tensor h = head(index);
    if (m.qk_norm) h = unit_mean_square(m, h) * at(block + norm_name);
    return rotate(h, attend);
  };
  std::vector<Tensor> outputs;
  for (std::int64_t k = 0; k < m.kv_heads; ++k) {
    // Its query heads, each followed by its gate, then the key, then the value.
    const std::int64_t each = m.attention_gate ? 2 : 1, first = k * (each * group + 2);
    const Tensor key = ready(first + each * group, "k_norm.weight");
    for (std::int64_t g = 0; g < group; ++g) {
      const Tensor query = ready(first + each * g, "q_norm.weight");
      const Tensor scores =
          query.matmul(key.t()) / std::sqrt(static_cast<double>(width)) + attend.mask;
      // A sink's share of the softmax has no value.
      const bool sinks = m.attention_sinks && m.kind == ModuleKind::language;
      const Tensor all =
          sinks
              ? torch::cat(
                    {scores, at(block + "sinks.weight")[k * group + g].expand({scores.size(0), 1})},
                    1)
              : scores;
      const Tensor out = torch::softmax(all, 1)
                             .narrow(1, 0, scores.size(1))
                             .matmul(head(first + each * group + 1));
      outputs.push_back(m.attention_gate ? out * torch::sigmoid(head(first + 2 * g + 1)) : out);
    }
  }
  return linear(block + "out", torch::cat(outputs, 1));
}

// Row by row: the state of each value head decays, is corrected towards the row's value, and is
// read. arXiv 2412.06464, equation 10; the convolution, norms and gates as Qwen3-Next has them.
Tensor SampleModel::delta_rule(const Module& m, const std::string& block, const Tensor& x) const {
  constexpr double kLengthEpsilon = 1e-6;
  const std::int64_t tokens = x.size(0), d = m.linear_head_dim, keys = m.linear_key_heads,
                     each = m.linear_value_heads / keys, mixed = (2 + each) * d;
  const Tensor all = linear(block + "linear_in", x);
  const std::int64_t of_key = all.size(1) / keys;
  std::vector<Tensor> outputs;
  for (std::int64_t h = 0; h < keys; ++h) {
    const Tensor mine = all.narrow(1, h * of_key, of_key);
    const Tensor taps = at(block + "linear_conv.weight").narrow(0, h * mixed, mixed);
    std::vector<Tensor> convolved;
    for (std::int64_t t = 0; t < tokens; ++t) {
      Tensor sum = torch::zeros({mixed}, x.options());
      for (std::int64_t j = 0; j < m.linear_conv; ++j) {
        const std::int64_t row = t - (m.linear_conv - 1) + j;
        if (row >= 0) sum = sum + mine[row].narrow(0, 0, mixed) * taps.select(1, j);
      }
      convolved.push_back(sum * torch::sigmoid(sum));
    }
    const auto unit = [&](const Tensor& v) { return v / torch::sqrt(v.dot(v) + kLengthEpsilon); };
    for (std::int64_t g = 0; g < each; ++g) {
      const std::int64_t value = h * each + g;
      Tensor state = torch::zeros({d, d}, x.options());  // [value, key]
      std::vector<Tensor> rows;
      for (std::int64_t t = 0; t < tokens; ++t) {
        const Tensor& c = convolved[static_cast<std::size_t>(t)];
        const Tensor query = unit(c.narrow(0, 0, d)) / std::sqrt(static_cast<double>(d));
        const Tensor key = unit(c.narrow(0, d, d)), v = c.narrow(0, (2 + g) * d, d);
        const Tensor gate = mine[t].narrow(0, mixed + g * d, d);
        const Tensor beta = torch::sigmoid(mine[t][mixed + each * d + g]);
        const Tensor decay =
            torch::exp(-torch::exp(at(block + "linear_decay.weight")[value]) *
                       torch::log1p(torch::exp(mine[t][mixed + each * d + each + g] +
                                               at(block + "linear_decay.bias")[value])));
        const Tensor projected = torch::eye(d, x.options()) - beta * torch::outer(key, key);
        state = decay * state.matmul(projected) + beta * torch::outer(v, key);
        const Tensor out = unit_mean_square(m, state.mv(query)) * at(block + "linear_norm.weight");
        rows.push_back(out * gate * torch::sigmoid(gate));
      }
      outputs.push_back(torch::stack(rows));
    }
  }
  return linear(block + "out", torch::cat(outputs, 1));
}

// LFM2, arXiv 2511.23404: a convolution by channel over the last rows, between two gates.
Tensor SampleModel::short_convolution(const Module& m, const std::string& block,
                                      const Tensor& x) const {
  const Tensor all = linear(block + "conv_in", x), taps = at(block + "conv.weight");
  const auto part = [&](std::int64_t first) { return all.slice(1, first, c10::nullopt, 3); };
  const Tensor channels = (part(0) * part(2)).t().unsqueeze(0);  // [1, H, T]
  const Tensor z = torch::conv1d(channels, taps.unsqueeze(1), Tensor(), /*stride=*/1,
                                 /*padding=*/m.short_conv - 1, /*dilation=*/1, m.hidden)
                       .narrow(2, 0, x.size(0));
  return linear(block + "out", part(1) * z.squeeze(0).t());
}

// DeepSeek-V2, arXiv 2405.04434, equations 9 to 19, head by head.
Tensor SampleModel::latent_attention(const Module& m, const std::string& block, const Tensor& x,
                                     const Attend& attend) const {
  const std::int64_t plain = m.head_dim, rotated = m.rotary_dim, value = value_width(m);
  Tensor from = x;
  if (m.query_rank > 0)
    from = unit_mean_square(m, linear(block + "q_down", x)) * at(block + "q_down_norm.weight");
  const Tensor queries = linear(block + "q_up", from);
  const Tensor joint = linear(block + "kv_down", x);
  const Tensor shared = rotate(joint.narrow(1, m.key_value_rank, rotated), attend);
  const Tensor latent =
      unit_mean_square(m, joint.narrow(1, 0, m.key_value_rank)) * at(block + "kv_down_norm.weight");
  const Tensor pairs = linear(block + "kv_up", latent);
  std::vector<Tensor> outputs;
  for (std::int64_t h = 0; h < m.heads; ++h) {
    const Tensor query = queries.narrow(1, h * (plain + rotated), plain + rotated);
    const Tensor key = pairs.narrow(1, h * (plain + value), plain);
    const Tensor scores = query.narrow(1, 0, plain).matmul(key.t()) +
                          rotate(query.narrow(1, plain, rotated), attend).matmul(shared.t());
    outputs.push_back(
        torch::softmax(
            scores * m.score_factor / std::sqrt(static_cast<double>(plain + rotated)) + attend.mask,
            1)
            .matmul(pairs.narrow(1, h * (plain + value) + plain, value)));
  }
  return linear(block + "out", torch::cat(outputs, 1));
}

}  // namespace polyphony::exec::testing
