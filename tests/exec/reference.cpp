#include "tests/exec/reference.h"

#include <algorithm>
#include <cmath>

#include "exec/init.h"
#include "exec/latents.h"
#include "shared/parameters.h"
#include "tests/exec/reference_diffusion.h"
#include "tests/exec/reference_experts.h"

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

constexpr double kLayerNormEpsilon = 1e-5;  // torch.nn.LayerNorm's default, and CLIP's vision tower
constexpr double kRmsNormEpsilon = 1e-5;    // "rms_norm_eps" of Llama 2's config.json

const auto kWide = torch::TensorOptions(torch::kFloat64);

const Module* find_module(const Model& model, ModuleKind kind) {
  for (const Module& module : model.modules)
    if (module.kind == kind) return &module;
  return nullptr;
}

// The forward pass of one sample.
class SampleModel {
 public:
  SampleModel(const Model& model, const Tensors& values) : model_(model), values_(values) {}

  // What the blocks made of the last sample: [T, H].
  const Tensor& hidden() const { return hidden_; }
  // Σ over the layers of the last sample's balance terms, weighted and divided by their number.
  const Tensor& balance() const { return balance_; }

  // [labels, V]
  Tensor logits(const Sample& sample, const SampleContent& content) {
    balance_ = torch::zeros({}, kWide);
    const Module& language = *find_module(model_, ModuleKind::language);
    Tensor x = sequence(language, sample, content);
    for (int b = 0; b < language.layers; ++b)
      x = decoder_block(language, language.name + ".block" + std::to_string(b) + ".",
                        add_features(b + 1, sample, content, x));
    hidden_ = x;
    std::vector<std::int64_t> rows;  // that predict a label
    std::int64_t row = 0;
    for (const Item& item : sample.items) {
      row += sequence_rows(item);
      for (std::int64_t label = item.loss_tokens; label > 0; --label) rows.push_back(row - label);
    }
    const Tensor normed = rms_norm(language.name + ".head.norm", x);
    return torch::linear(normed.index_select(0, torch::tensor(rows, torch::kInt64)),
                         at(language.name + ".head.output.weight"));
  }

 private:
  const Tensor& at(const std::string& name) const { return values_.at(name); }
  Tensor linear(const std::string& name, const Tensor& x) const {
    const auto bias = values_.find(name + ".bias"), low = values_.find(name + ".lora_a");
    const Tensor y =
        torch::linear(x, at(name + ".weight"), bias == values_.end() ? Tensor() : bias->second);
    if (low == values_.end()) return y;
    const Module& m =
        *std::find_if(model_.modules.begin(), model_.modules.end(),
                      [&](const auto& e) { return name.rfind(e.name + ".", 0) == 0; });
    return y + m.lora_alpha / m.lora_rank *
                   torch::linear(torch::linear(x, low->second), at(name + ".lora_b"));
  }
  Tensor layer_norm(const std::string& name, const Tensor& x) const {
    return torch::layer_norm(x, {x.size(-1)}, at(name + ".weight"), at(name + ".bias"),
                             kLayerNormEpsilon);
  }
  Tensor rms_norm(const std::string& name, const Tensor& x) const {
    return x / torch::sqrt(x.pow(2).mean(-1, true) + kRmsNormEpsilon) * at(name + ".weight");
  }

  std::int64_t sequence_rows(const Item& item) const {
    if (item.modality == Modality::text) return item.tokens;
    if (item.modality == Modality::latent) return 0;
    const Module* projector = find_module(model_, ModuleKind::projector);
    return item.tokens / (projector ? projector->merge * projector->merge : 1);
  }

  // Inner features of the images, added where their tokens stand before a layer (DeepStack).
  Tensor add_features(int layer, const Sample& sample, const SampleContent& content,
                      Tensor x) const {
    for (const Edge& edge : model_.edges) {
      if (edge.to_layer != layer) continue;
      const Module& projector = model_.modules[edge.from.value];
      const auto into = std::find_if(model_.edges.begin(), model_.edges.end(),
                                     [&](const Edge& e) { return e.to == edge.from; });
      std::int64_t row = 0;
      std::size_t image = 0;
      for (const Item& item : sample.items) {
        const std::int64_t rows = sequence_rows(item);
        if (item.modality == Modality::image)
          x = torch::cat({x.narrow(0, 0, row),
                          x.narrow(0, row, rows) +
                              image_rows(content.images.at(image++), &projector, into->from_layer),
                          x.narrow(0, row + rows, x.size(0) - row - rows)});
        row += rows;
      }
    }
    return x;
  }

  // Items in order: [T, H].
  Tensor sequence(const Module& language, const Sample& sample,
                  const SampleContent& content) const {
    const Tensor tokens = torch::tensor(content.token_ids, torch::kInt64);
    std::vector<Tensor> parts;
    std::size_t image = 0;
    std::int64_t token = 0;
    for (const Item& item : sample.items) {
      if (item.modality == Modality::image) {
        parts.push_back(
            image_rows(content.images.at(image++), find_module(model_, ModuleKind::projector), -1));
        continue;
      }
      if (item.modality == Modality::latent) continue;
      parts.push_back(torch::embedding(at(language.name + ".embedding.weight"),
                                       tokens.narrow(0, token, item.tokens)));
      token += item.tokens;
    }
    return torch::cat(parts);
  }

  // One image [C, S, S] through the encoder, or its layers up to `last`, and a projector.
  Tensor image_rows(const Tensor& image, const Module* projector, int last) const {
    const Module& m = *find_module(model_, ModuleKind::vision);
    const std::int64_t side = image.size(1) / m.patch;
    const Tensor patches =
        image.to(kWide).unfold(1, m.patch, m.patch).unfold(2, m.patch, m.patch);  // [C, s, s, p, p]
    Tensor x = linear(m.name + ".patch_embedding",
                      patches.permute({1, 2, 0, 3, 4}).reshape({side * side, -1}));
    // An image smaller than the table takes the table's upper left corner.
    const std::int64_t table_side = m.image_size / m.patch;
    const Tensor table =
        at(m.name + ".patch_embedding.position").view({table_side, table_side, m.hidden});
    x = x + table.slice(0, 0, side).slice(1, 0, side).reshape({side * side, m.hidden});
    for (int b = 0; b < (last < 0 ? m.layers : last); ++b)
      x = vision_block(m, m.name + ".block" + std::to_string(b) + ".", x);
    if (last < 0) x = layer_norm(m.name + ".norm", x);
    return projector ? project(*projector, x, side) : x;
  }

  Tensor project(const Module& m, const Tensor& x, std::int64_t side) const {
    const std::int64_t cells = side / m.merge;
    const Tensor merged = x.view({cells, m.merge, cells, m.merge, x.size(1)})
                              .permute({0, 2, 1, 3, 4})
                              .reshape({cells * cells, m.merge * m.merge * x.size(1)});
    return linear(m.name + ".fc2", torch::gelu(linear(m.name + ".fc1", merged)));
  }

  Tensor vision_block(const Module& m, const std::string& block, Tensor x) const {
    x = x + attention(m, block, layer_norm(block + "norm1", x));
    return x + linear(block + "fc2",
                      torch::gelu(linear(block + "fc1", layer_norm(block + "norm2", x))));
  }
  Tensor decoder_block(const Module& m, const std::string& block, Tensor x) {
    x = x + attention(m, block, rms_norm(block + "norm1", x));
    if (m.experts > 0) {
      const auto [y, balance] = reference_experts(m, values_, block, rms_norm(block + "norm2", x));
      balance_ = balance_ + m.balance_weight / m.layers * balance;
      return x + y;
    }
    const Tensor gate_up = linear(block + "gate_up", rms_norm(block + "norm2", x));
    const Tensor gate = gate_up.slice(1, 0, c10::nullopt, 2),
                 up = gate_up.slice(1, 1, c10::nullopt, 2);
    return x + linear(block + "down", gate * torch::sigmoid(gate) * up);
  }

  // x [T, H]; head by head, with a dense [T, T] mask when causal.
  Tensor attention(const Module& m, const std::string& block, const Tensor& x) const {
    const std::int64_t tokens = x.size(0), group = m.heads / m.kv_heads, width = m.head_dim;
    const Tensor qkv = linear(block + "qkv", x);
    const bool causal = m.kind == ModuleKind::language;
    Tensor mask = torch::zeros({tokens, tokens}, kWide);
    if (causal)
      mask = mask.masked_fill(torch::ones({tokens, tokens}, torch::kBool).triu(1), -INFINITY);
    const auto head = [&](std::int64_t index) { return qkv.narrow(1, index * width, width); };
    std::vector<Tensor> outputs;
    for (std::int64_t k = 0; k < m.kv_heads; ++k) {
      const std::int64_t first = k * (group + 2);  // its query heads, then the key, then the value
      const Tensor key = causal ? rotate(m, head(first + group)) : head(first + group);
      for (std::int64_t g = 0; g < group; ++g) {
        const Tensor query = causal ? rotate(m, head(first + g)) : head(first + g);
        const Tensor scores = query.matmul(key.t()) / std::sqrt(static_cast<double>(width)) + mask;
        outputs.push_back(torch::softmax(scores, 1).matmul(head(first + group + 1)));
      }
    }
    return linear(block + "out", torch::cat(outputs, 1));
  }

  // RoPE: elements i and i + D/2 are turned by position · theta^(−2i/D).
  static Tensor rotate(const Module& m, const Tensor& x) {
    const std::int64_t half = m.head_dim / 2;
    const Tensor frequency =
        torch::pow(m.rope_theta, torch::arange(half, kWide) * (-2.0 / m.head_dim));
    const Tensor angle = torch::outer(torch::arange(x.size(0), kWide), frequency);  // [T, D/2]
    const Tensor low = x.narrow(1, 0, half), high = x.narrow(1, half, half);
    return torch::cat(
        {low * angle.cos() - high * angle.sin(), high * angle.cos() + low * angle.sin()}, 1);
  }

  const Model& model_;
  const Tensors& values_;
  Tensor hidden_;
  Tensor balance_;
};

}  // namespace

Reference::Reference(const Scenario& scenario, torch::Dtype start)
    : model_(scenario.model), training_(scenario.training) {
  for (const Module& module : model_.modules) {
    for (const Parameter& parameter : polyphony::parameters(module)) {
      const std::string& name = parameter.name;
      values_[name] = initial_value(parameter, {}, training_.seed, start, true).to(kWide);
      if (!parameter.trained) continue;
      trained_.insert(name);
      if (parameter.decay) decayed_.insert(name);
      first_[name] = torch::zeros_like(values_[name]);
      second_[name] = torch::zeros_like(values_[name]);
    }
  }
}

// The weighted mean squared error of one sample's latents, by the elements of the whole batch.
Tensor Reference::flow_loss(const Sample& sample, const SampleContent& content,
                            const Tensor& hidden, const Tensors& leaves, const Batch& batch,
                            Draw draw) const {
  const Module& m = *find_module(model_, ModuleKind::diffusion);
  Tensor sum = torch::zeros({}, kWide);
  std::size_t latent = 0;
  for (std::uint32_t i = 0; i < sample.items.size(); ++i) {
    if (sample.items[i].modality != Modality::latent) continue;
    const ItemKey key{sample.id, i};
    const std::int64_t tokens = sample.items[i].tokens;
    sum = sum + reference_flow_error(m, leaves,
                                     {content.latents.at(latent++).to(kWide),
                                      flow_noise(draw, key, tokens, latent_width(m)).to(kWide),
                                      flow_time(draw, key), hidden});
  }
  return sum * (m.loss_weight / static_cast<double>(latent_elements(m, batch)));
}

ReferenceStep Reference::step(const Batch& batch, const Dataset& dataset, double rate, Draw draw) {
  ReferenceStep result;
  std::int64_t labels = 0;
  for (const Sample& sample : batch.samples)
    for (const Item& item : sample.items) labels += item.loss_tokens;
  Tensors leaves;
  for (const auto& [name, value] : values_) leaves[name] = value.clone().requires_grad_(true);
  SampleModel network(model_, leaves);
  const bool balanced = std::any_of(model_.modules.begin(), model_.modules.end(),
                                    [](const Module& m) { return m.balance_weight > 0; });
  for (const Sample& sample : batch.samples) {
    const SampleContent content = dataset.content(sample, {});
    const bool flows = !content.latents.empty();
    if (content.labels.empty() && !balanced && !flows) continue;  // adds nothing
    const Tensor loss =
        torch::nll_loss(torch::log_softmax(network.logits(sample, content), 1),
                        torch::tensor(content.labels, torch::kInt64), {}, at::Reduction::Sum) /
        static_cast<double>(labels);
    const Tensor flow = flows ? flow_loss(sample, content, network.hidden(), leaves, batch, draw)
                              : torch::zeros({}, kWide);
    (loss + flow + network.balance() / static_cast<double>(batch.samples.size())).backward();
    result.loss += loss.item<double>() + flow.item<double>();
  }
  double squares = 0;
  for (const std::string& name : trained_) {
    const Tensor& gradient = leaves[name].grad();
    result.gradients[name] = gradient.defined() ? gradient : torch::zeros_like(values_[name]);
    squares += result.gradients[name].pow(2).sum().item<double>();
  }
  result.gradient_norm = std::sqrt(squares);
  if (training_.clip_norm > 0)
    result.clip = std::min(1.0, training_.clip_norm / (result.gradient_norm + 1e-6));
  ++steps_;
  for (const std::string& name : trained_) {
    const Tensor gradient = result.gradients[name] * result.clip;
    first_[name] = training_.beta1 * first_[name] + (1 - training_.beta1) * gradient;
    second_[name] = training_.beta2 * second_[name] + (1 - training_.beta2) * gradient * gradient;
    const Tensor mean = first_[name] / (1 - std::pow(training_.beta1, steps_));
    const Tensor spread = torch::sqrt(second_[name] / (1 - std::pow(training_.beta2, steps_)));
    const double decay = decayed_.count(name) ? training_.weight_decay : 0.0;
    values_[name] = values_[name] * (1 - rate * decay) - rate * mean / (spread + training_.epsilon);
  }
  for (const auto& [name, value] : values_) result.parameters[name] = value.clone();
  return result;
}

std::vector<std::int64_t> Reference::predict(const Sample& sample, const Dataset& dataset) const {
  const torch::NoGradGuard no_grad;
  const SampleContent content = dataset.content(sample, {});
  if (content.labels.empty()) return {};
  const Tensor best = SampleModel(model_, values_).logits(sample, content).argmax(1).contiguous();
  return {best.const_data_ptr<std::int64_t>(), best.const_data_ptr<std::int64_t>() + best.numel()};
}

}  // namespace polyphony::exec::testing
