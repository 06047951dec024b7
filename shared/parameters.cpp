#include "shared/parameters.h"

#include <cmath>

#include "shared/error.h"
#include "shared/lora.h"
#include "shared/random.h"

namespace polyphony {
namespace {

// Initial deviations. Matrices keep the variance of what passes: 1/√(inputs) (LeCun et al.,
// "Efficient BackProp", 1998, §4.6). Tokens enter with variance 1, as T5's do (Raffel et al., arXiv
// 1910.10683); positions are a small addition, 0.02 (Dosovitskiy et al., arXiv 2010.11929).
constexpr double kTokenDeviation = 1.0;
constexpr double kPositionDeviation = 0.02;

// Adds the parameters of one layer, all under "<module>.<layer>.".
class LayerParameters {
 public:
  LayerParameters(std::vector<Parameter>& out, std::string prefix, int layer)
      : out_(out), prefix_(std::move(prefix)), layer_(layer) {}

  void matrix(const char* suffix, std::int64_t rows, std::int64_t columns, Cut cut) {
    const double deviation = 1 / std::sqrt(static_cast<double>(columns));
    out_.push_back(
        {prefix_ + suffix, layer_, {rows, columns}, cut, Initial::normal, deviation, true});
  }
  // Rows laid out per key/value head (Cut::heads); `columns` 0: a bias.
  void fused(const char* suffix, const Module& m, std::int64_t columns) {
    const std::int64_t rows = (std::int64_t{m.heads} + 2 * m.kv_heads) * m.head_dim;
    if (columns > 0)
      matrix(suffix, rows, columns, Cut::heads);
    else
      vector(suffix, rows, Cut::heads, Initial::zeros);
    out_.back().key_value_heads = m.kv_heads;
    out_.back().group_heads = m.heads / m.kv_heads;
    out_.back().head_dim = m.head_dim;
  }
  // One matrix per expert.
  void experts(const char* suffix, const Module& m, std::int64_t rows, std::int64_t columns,
               Cut cut) {
    matrix(suffix, rows, columns, cut);
    out_.back().shape.insert(out_.back().shape.begin(), m.experts);
    out_.back().expert = true;
  }
  void table(const char* suffix, std::int64_t rows, std::int64_t columns, Cut cut,
             double deviation) {  // embeddings: no decay
    out_.push_back(
        {prefix_ + suffix, layer_, {rows, columns}, cut, Initial::normal, deviation, false});
  }
  void zero_matrix(const char* suffix, std::int64_t rows, std::int64_t columns) {
    out_.push_back(
        {prefix_ + suffix, layer_, {rows, columns}, Cut::replicated, Initial::zeros, 0.0, true});
  }
  void vector(const char* suffix, std::int64_t size, Cut cut, Initial initial) {
    out_.push_back({prefix_ + suffix, layer_, {size}, cut, initial, 0.0, false});
  }

 private:
  std::vector<Parameter>& out_;
  std::string prefix_;
  int layer_;
};

void vision_block(const Module& m, LayerParameters add) {
  const std::int64_t width = std::int64_t{m.heads} * m.head_dim;
  add.vector("norm1.weight", m.hidden, Cut::replicated, Initial::ones);
  add.vector("norm1.bias", m.hidden, Cut::replicated, Initial::zeros);
  add.fused("qkv.weight", m, m.hidden);
  add.fused("qkv.bias", m, 0);
  add.matrix("out.weight", m.hidden, width, Cut::columns);
  add.vector("out.bias", m.hidden, Cut::replicated, Initial::zeros);
  add.vector("norm2.weight", m.hidden, Cut::replicated, Initial::ones);
  add.vector("norm2.bias", m.hidden, Cut::replicated, Initial::zeros);
  add.matrix("fc1.weight", m.ffn, m.hidden, Cut::rows);
  add.vector("fc1.bias", m.ffn, Cut::rows, Initial::zeros);
  add.matrix("fc2.weight", m.hidden, m.ffn, Cut::columns);
  add.vector("fc2.bias", m.hidden, Cut::replicated, Initial::zeros);
}

void decoder_block(const Module& m, LayerParameters add) {
  const std::int64_t width = std::int64_t{m.heads} * m.head_dim;
  add.vector("norm1.weight", m.hidden, Cut::replicated, Initial::ones);
  add.fused("qkv.weight", m, m.hidden);
  add.matrix("out.weight", m.hidden, width, Cut::columns);
  add.vector("norm2.weight", m.hidden, Cut::replicated, Initial::ones);
  if (m.experts == 0) {
    add.matrix("gate_up.weight", 2 * std::int64_t{m.ffn}, m.hidden, Cut::rows);
    add.matrix("down.weight", m.hidden, m.ffn, Cut::columns);
    return;
  }
  add.matrix("router.weight", m.experts, m.hidden, Cut::replicated);
  add.experts("experts.gate_up.weight", m, 2 * std::int64_t{m.expert_ffn}, m.hidden, Cut::rows);
  add.experts("experts.down.weight", m, m.hidden, m.expert_ffn, Cut::columns);
  if (m.shared_ffn == 0) return;
  add.matrix("shared.gate_up.weight", 2 * std::int64_t{m.shared_ffn}, m.hidden, Cut::rows);
  add.matrix("shared.down.weight", m.hidden, m.shared_ffn, Cut::columns);
}

// Shifts, scales and gates (`parts` of them) from the features of time. Blocks begin as the
// identity: the second matrix is zero (adaLN-Zero, Peebles and Xie, arXiv 2212.09748).
void modulation(const Module& m, int parts, LayerParameters& add) {
  const std::int64_t width = std::int64_t{parts} * m.hidden;
  add.matrix("time_in.weight", m.modulation, kTimeFeatures, Cut::replicated);
  add.vector("time_in.bias", m.modulation, Cut::replicated, Initial::zeros);
  add.zero_matrix("time_out.weight", width, m.modulation);
  add.vector("time_out.bias", width, Cut::replicated, Initial::zeros);
}

void diffusion_block(const Module& m, LayerParameters add) {
  const std::int64_t width = std::int64_t{m.heads} * m.head_dim;
  modulation(m, 6, add);
  add.fused("qkv.weight", m, m.hidden);
  add.fused("qkv.bias", m, 0);
  add.matrix("out.weight", m.hidden, width, Cut::columns);
  add.vector("out.bias", m.hidden, Cut::replicated, Initial::zeros);
  if (m.condition > 0) {
    add.vector("cross_norm.weight", m.hidden, Cut::replicated, Initial::ones);
    add.vector("cross_norm.bias", m.hidden, Cut::replicated, Initial::zeros);
    add.matrix("cross_query.weight", width, m.hidden, Cut::rows);
    add.vector("cross_query.bias", width, Cut::rows, Initial::zeros);
    add.matrix("cross_key_value.weight", 2 * width, m.condition, Cut::rows);  // by head [k | v]
    add.vector("cross_key_value.bias", 2 * width, Cut::rows, Initial::zeros);
    add.matrix("cross_out.weight", m.hidden, width, Cut::columns);
    add.vector("cross_out.bias", m.hidden, Cut::replicated, Initial::zeros);
  }
  add.matrix("fc1.weight", m.ffn, m.hidden, Cut::rows);
  add.vector("fc1.bias", m.ffn, Cut::rows, Initial::zeros);
  add.matrix("fc2.weight", m.hidden, m.ffn, Cut::columns);
  add.vector("fc2.bias", m.hidden, Cut::replicated, Initial::zeros);
}

}  // namespace

std::vector<Parameter> parameters(const Module& module, LayerRange range) {
  std::vector<Parameter> out;
  const std::vector<LayerKind> stack = layers(module);
  POLYPHONY_CHECK(range.begin <= range.end && range.end <= stack.size(),
                  module.name << " has " << stack.size() << " layers, asked for [" << range.begin
                              << "," << range.end << ")");
  for (int layer = range.begin; layer < range.end; ++layer) {
    const std::string block = module.name + ".block" + std::to_string(layer - 1) + ".";
    switch (stack[static_cast<std::size_t>(layer)]) {
      case LayerKind::patch_embedding: {
        LayerParameters add(out, module.name + ".patch_embedding.", layer);
        const std::int64_t side = module.image_size / module.patch;
        add.matrix("weight", module.hidden,
                   std::int64_t{module.channels} * module.patch * module.patch, Cut::replicated);
        add.vector("bias", module.hidden, Cut::replicated, Initial::zeros);
        add.table("position", side * side, module.hidden, Cut::replicated, kPositionDeviation);
        break;
      }
      case LayerKind::encoder_block:
        vision_block(module, {out, block, layer});
        break;
      case LayerKind::encoder_norm: {
        LayerParameters add(out, module.name + ".norm.", layer);
        add.vector("weight", module.hidden, Cut::replicated, Initial::ones);
        add.vector("bias", module.hidden, Cut::replicated, Initial::zeros);
        break;
      }
      case LayerKind::projector_mlp: {
        LayerParameters add(out, module.name + ".", layer);
        add.matrix("fc1.weight", module.projector_hidden, module.projector_in, Cut::rows);
        add.vector("fc1.bias", module.projector_hidden, Cut::rows, Initial::zeros);
        add.matrix("fc2.weight", module.projector_out, module.projector_hidden, Cut::columns);
        add.vector("fc2.bias", module.projector_out, Cut::replicated, Initial::zeros);
        break;
      }
      case LayerKind::token_embedding:
        LayerParameters(out, module.name + ".embedding.", layer)
            .table("weight", module.vocab, module.hidden, Cut::rows, kTokenDeviation);
        break;
      case LayerKind::decoder_block:
        decoder_block(module, {out, block, layer});
        break;
      case LayerKind::language_head: {
        LayerParameters add(out, module.name + ".head.", layer);
        add.vector("norm.weight", module.hidden, Cut::replicated, Initial::ones);
        add.matrix("output.weight", module.vocab, module.hidden, Cut::rows);
        break;
      }
      case LayerKind::latent_embedding: {
        LayerParameters add(out, module.name + ".latent_embedding.", layer);
        add.matrix("weight", module.hidden, latent_width(module), Cut::replicated);
        add.vector("bias", module.hidden, Cut::replicated, Initial::zeros);
        break;
      }
      case LayerKind::diffusion_block:
        diffusion_block(module, {out, block, layer});
        break;
      case LayerKind::diffusion_head: {
        LayerParameters add(out, module.name + ".head.", layer);
        modulation(module, 2, add);
        add.zero_matrix("output.weight", latent_width(module), module.hidden);
        add.vector("output.bias", latent_width(module), Cut::replicated, Initial::zeros);
        break;
      }
    }
  }
  return with_low_rank(module, std::move(out));
}

std::vector<Parameter> parameters(const Module& module) {
  return parameters(module, {0, static_cast<std::uint16_t>(layers(module).size())});
}

std::int64_t parameter_count(const Module& module) {
  std::int64_t total = 0;
  for (const Parameter& parameter : parameters(module)) total += parameter.count();
  return total;
}

std::uint64_t parameter_seed(std::uint64_t seed, const std::string& name) {
  std::uint64_t state = mix64(seed);
  for (const char c : name) state = mix64(state ^ static_cast<unsigned char>(c));
  return state;
}

}  // namespace polyphony
