#include "tests/exec/reference/reference_diffusion.h"

#include <cmath>

namespace polyphony::exec::testing {

using torch::Tensor;

namespace {

constexpr double kEpsilon = 1e-5;  // torch.nn.LayerNorm's default

const auto kWide = torch::TensorOptions(torch::kFloat64);

// Element i of a position's code on an axis of `width` elements: sin, then cos, of
// position·10000^(−2i/width).
double code(std::int64_t place, std::int64_t i, std::int64_t width) {
  const std::int64_t half = width / 2;
  const double angle =
      static_cast<double>(place) *
      std::pow(10000.0, -static_cast<double>(i % half) / static_cast<double>(half));
  return i < half ? std::sin(angle) : std::cos(angle);
}

Tensor positions(std::int64_t tokens, std::int64_t hidden) {
  Tensor table = torch::empty({tokens, hidden}, kWide);
  const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(tokens))));
  const bool square = side * side == tokens;
  for (std::int64_t token = 0; token < tokens; ++token) {
    for (std::int64_t i = 0; i < hidden; ++i) {
      double value = code(token, i, hidden);
      if (square)
        value = i < hidden / 2 ? code(token / side, i, hidden / 2)
                               : code(token % side, i - hidden / 2, hidden / 2);
      table[token][i] = value;
    }
  }
  return table;
}

// cos, then sin, of 1000·t·10000^(−i/128).
Tensor time_features(double time) {
  Tensor features = torch::empty({256}, kWide);
  for (std::int64_t i = 0; i < 256; ++i) {
    const double angle = 1000 * time * std::pow(10000.0, -static_cast<double>(i % 128) / 128);
    features[i] = i < 128 ? std::cos(angle) : std::sin(angle);
  }
  return features;
}

class ItemModel {
 public:
  ItemModel(const Module& module, const Tensors& values, const ReferenceLatent& item)
      : m_(module), values_(values), item_(item) {}

  Tensor prediction() const {
    const Tensor mixed = item_.latent * item_.time + item_.noise * (1 - item_.time);
    Tensor x = linear(m_.name + ".latent_embedding", mixed);
    x = x + positions(x.size(0), x.size(1));
    for (int b = 0; b < m_.layers; ++b) x = block(m_.name + ".block" + std::to_string(b) + ".", x);
    const Tensor by_part = modulation(m_.name + ".head.", 2);
    return linear(m_.name + ".head.output", normed(x) * (1 + by_part[1]) + by_part[0]);
  }

 private:
  Tensor linear(const std::string& name, const Tensor& x) const {
    return x.matmul(values_.at(name + ".weight").t()) + values_.at(name + ".bias");
  }
  static Tensor normed(const Tensor& x) {
    const Tensor centred = x - x.mean(1, true);
    return centred / torch::sqrt(centred.pow(2).mean(1, true) + kEpsilon);
  }
  // [parts, H]
  Tensor modulation(const std::string& layer, std::int64_t parts) const {
    const Tensor inner = linear(layer + "time_in", time_features(item_.time).unsqueeze(0));
    return linear(layer + "time_out", inner * torch::sigmoid(inner)).view({parts, m_.hidden});
  }
  // Softmax over all rows attended to.
  Tensor head(const Tensor& query, const Tensor& key, const Tensor& value) const {
    if (key.size(0) == 0) return torch::zeros_like(query);
    const Tensor scores = query.matmul(key.t()) / std::sqrt(static_cast<double>(m_.head_dim));
    return torch::softmax(scores, 1).matmul(value);
  }
  Tensor self_attention(const std::string& layer, const Tensor& x) const {
    const Tensor qkv = linear(layer + "qkv", x);
    std::vector<Tensor> heads;
    for (std::int64_t h = 0; h < m_.heads; ++h) {  // query, key, value of each head in turn
      const auto part = [&](std::int64_t i) {
        return qkv.narrow(1, (3 * h + i) * m_.head_dim, m_.head_dim);
      };
      heads.push_back(head(part(0), part(1), part(2)));
    }
    return linear(layer + "out", torch::cat(heads, 1));
  }
  Tensor cross_attention(const std::string& layer, const Tensor& x) const {
    const Tensor normed_x =
        normed(x) * values_.at(layer + "cross_norm.weight") + values_.at(layer + "cross_norm.bias");
    const Tensor query = linear(layer + "cross_query", normed_x);
    const Tensor read = linear(layer + "cross_key_value", item_.conditioning);
    std::vector<Tensor> heads;
    for (std::int64_t h = 0; h < m_.heads; ++h)
      heads.push_back(head(query.narrow(1, h * m_.head_dim, m_.head_dim),
                           read.narrow(1, 2 * h * m_.head_dim, m_.head_dim),
                           read.narrow(1, (2 * h + 1) * m_.head_dim, m_.head_dim)));
    return linear(layer + "cross_out", torch::cat(heads, 1));
  }
  Tensor block(const std::string& layer, Tensor x) const {
    const Tensor by_part = modulation(layer, 6);  // shift, scale, gate; twice
    x = x + by_part[2] * self_attention(layer, normed(x) * (1 + by_part[1]) + by_part[0]);
    if (m_.condition > 0) x = x + cross_attention(layer, x);
    const Tensor inner = linear(layer + "fc1", normed(x) * (1 + by_part[4]) + by_part[3]);
    return x + by_part[5] * linear(layer + "fc2", torch::gelu(inner));
  }

  const Module& m_;
  const Tensors& values_;
  const ReferenceLatent& item_;
};

}  // namespace

Tensor reference_flow_error(const Module& module, const Tensors& values,
                            const ReferenceLatent& item) {
  const Tensor prediction = ItemModel(module, values, item).prediction();
  return (prediction - (item.latent - item.noise)).pow(2).sum();
}

}  // namespace polyphony::exec::testing
