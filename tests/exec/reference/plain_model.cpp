#include "tests/exec/reference/plain_model.h"

#include <cmath>

#include "exec/parameters/init.h"
#include "tests/exec/reference/plain_fp8.h"
#include "tests/exec/reference/reference_experts.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

constexpr double kEpsilon = 1e-5;  // of both norms

class Plain {
 public:
  explicit Plain(const std::vector<Stage>& stages) : fp8_(stages.front().options.fp8) {
    for (const Stage& stage : stages) {
      for (const Parameter& spec : parameters(stage.module)) {
        weights[spec.name] =
            initial_value(spec, {}, stage.options.seed, torch::kFloat64, true).requires_grad_(true);
      }
    }
  }

  // One image through encoder and projector: [patches, ·] -> [patches / merge², H of the language].
  Tensor image(const Module& m, const Module& projector, PatchGrid grid,
               const Tensor& patches) const {
    const std::int64_t table_side = m.image_size / m.patch;
    const Tensor table =
        weights.at("vision.patch_embedding.position").view({table_side, table_side, m.hidden});
    Tensor x =
        linear("vision.patch_embedding", patches) +
        table.slice(0, 0, grid.rows).slice(1, 0, grid.columns).reshape({grid.patches(), m.hidden});
    for (int b = 0; b < m.layers; ++b) {
      const std::string block = "vision.block" + std::to_string(b) + ".";
      x = x + attention(m, block, layer_norm(block + "norm1", x));
      x = x +
          linear(block + "fc2", torch::gelu(linear(block + "fc1", layer_norm(block + "norm2", x))));
    }
    x = layer_norm("vision.norm", x);
    const std::int64_t merge = projector.merge;
    x = x.view({grid.rows / merge, merge, grid.columns / merge, merge, m.hidden})
            .permute({0, 2, 1, 3, 4})
            .reshape({grid.patches() / (merge * merge), -1});
    return linear("projector.fc2", torch::gelu(linear("projector.fc1", x)));
  }

  // One sample's rows through the decoder blocks and the last norm.
  Tensor sample(const Module& m, Tensor x) {
    for (int b = 0; b < m.layers; ++b) {
      const std::string block = "language.block" + std::to_string(b) + ".";
      x = x + attention(m, block, rms_norm(block + "norm1", x));
      if (m.experts > 0) {
        const auto [y, term] = reference_experts(m, weights, block, rms_norm(block + "norm2", x));
        balance = balance + m.balance_weight / m.layers * term;
        x = x + y;
        continue;
      }
      const Tensor both = linear(block + "gate_up", rms_norm(block + "norm2", x));
      const Tensor gate = both.slice(1, 0, c10::nullopt, 2), up = both.slice(1, 1, c10::nullopt, 2);
      x = x + linear(block + "down", gate * torch::sigmoid(gate) * up);
    }
    return rms_norm("language.head.norm", x);
  }

  std::map<std::string, Tensor> weights;
  Tensor balance = torch::zeros({}, torch::kFloat64);  // of all samples so far

 private:
  Tensor linear(const std::string& name, const Tensor& x) const {
    const auto bias = weights.find(name + ".bias");
    const Tensor& weight = weights.at(name + ".weight");
    if (fp8_ != Fp8Scaling::off && name.find(".block") != std::string::npos) {
      const Tensor y = plain_fp8_linear(x, weight, fp8_);
      return bias == weights.end() ? y : y + bias->second;
    }
    return torch::linear(x, weight, bias == weights.end() ? Tensor() : bias->second);
  }
  Tensor layer_norm(const std::string& name, const Tensor& x) const {
    return torch::layer_norm(x, {x.size(1)}, weights.at(name + ".weight"),
                             weights.at(name + ".bias"), kEpsilon);
  }
  Tensor rms_norm(const std::string& name, const Tensor& x) const {
    return x / torch::sqrt(x.pow(2).mean(1, true) + kEpsilon) * weights.at(name + ".weight");
  }

  static Tensor rotate(const Module& m, const Tensor& x) {
    const std::int64_t half = m.head_dim / 2;
    const auto wide = torch::TensorOptions(torch::kFloat64);
    const Tensor angle =
        torch::outer(torch::arange(x.size(0), wide),
                     torch::pow(m.rope_theta, torch::arange(half, wide) * (-2.0 / m.head_dim)));
    const Tensor low = x.narrow(1, 0, half), high = x.narrow(1, half, half);
    return torch::cat(
        {low * angle.cos() - high * angle.sin(), high * angle.cos() + low * angle.sin()}, 1);
  }

  Tensor attention(const Module& m, const std::string& block, const Tensor& x) const {
    const bool causal = m.kind == ModuleKind::language;
    const std::int64_t group = m.heads / m.kv_heads, width = m.head_dim, n = x.size(0);
    const Tensor qkv = linear(block + "qkv", x);
    const Tensor hidden = torch::ones({n, n}, torch::kBool).triu(1);
    std::vector<Tensor> outputs;
    for (std::int64_t k = 0; k < m.kv_heads; ++k) {
      const auto part = [&](std::int64_t i) {
        const Tensor raw = qkv.narrow(1, (k * (group + 2) + i) * width, width);
        return causal && i <= group ? rotate(m, raw) : raw;
      };
      for (std::int64_t g = 0; g < group; ++g) {
        Tensor scores = part(g).mm(part(group).t()) / std::sqrt(static_cast<double>(width));
        if (causal) scores = scores.masked_fill(hidden, -INFINITY);
        outputs.push_back(scores.softmax(1).mm(part(group + 1)));
      }
    }
    return linear(block + "out", torch::cat(outputs, 1));
  }

  Fp8Scaling fp8_;  // of the matrices of blocks
};

}  // namespace

PlainResult plain_model(const std::vector<Stage>& stages, const TestWork& work) {
  Plain plain(stages);
  const WorkInput& in = work.input;
  const Module& language = stages.at(2).module;
  std::vector<Tensor> images;
  std::int64_t first = 0;
  for (const PatchGrid& grid : in.images) {
    images.push_back(plain.image(stages.at(0).module, stages.at(1).module, grid,
                                 in.patches.narrow(0, first, grid.patches())));
    first += grid.patches();
  }
  Tensor x = torch::zeros({work.language.tokens, language.hidden}, torch::kFloat64);
  x = x.index_copy(0, in.text_rows,
                   torch::embedding(plain.weights.at("language.embedding.weight"), in.token_ids));
  if (!images.empty()) x = x.index_copy(0, in.edge_rows.at(0), torch::cat(images));
  std::vector<Tensor> samples;
  first = 0;
  for (const std::int64_t tokens : in.lengths) {
    samples.push_back(plain.sample(language, x.narrow(0, first, tokens)));
    first += tokens;
  }
  const Tensor logits = torch::linear(torch::cat(samples).index_select(0, in.loss_rows),
                                      plain.weights.at("language.head.output.weight"));
  const Tensor loss =
      torch::nll_loss(torch::log_softmax(logits, 1), in.labels, {}, at::Reduction::Sum) *
      in.loss_scale;
  (loss + plain.balance * in.balance_scale).backward();
  PlainResult result{loss.item<double>(), logits.argmax(1), {}};
  for (const auto& [name, weight] : plain.weights)
    result.gradients[name] = weight.grad().defined() ? weight.grad() : torch::zeros_like(weight);
  return result;
}

}  // namespace polyphony::exec::testing
