#include "shared/layers/parameters.h"

#include <cmath>

#include "shared/error.h"
#include "shared/layers/lora.h"
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

  void matrix(const std::string& suffix, std::int64_t rows, std::int64_t columns, Cut cut) {
    const double deviation = 1 / std::sqrt(static_cast<double>(columns));
    out_.push_back(
        {prefix_ + suffix, layer_, {rows, columns}, cut, Initial::normal, deviation, true});
  }
  void matrix_and_bias(const std::string& name, std::int64_t rows, std::int64_t columns, Cut cut,
                       bool bias) {
    matrix(name + ".weight", rows, columns, cut);
    if (bias)
      vector(name + ".bias", rows, cut == Cut::rows ? cut : Cut::replicated, Initial::zeros);
  }
  // Rows laid out per key/value head (Cut::heads); `columns` 0: a bias.
  void fused(const std::string& suffix, const Module& m, std::int64_t columns) {
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
  void experts(const std::string& suffix, const Module& m, std::int64_t rows, std::int64_t columns,
               Cut cut) {
    matrix(suffix, rows, columns, cut);
    out_.back().shape.insert(out_.back().shape.begin(), m.experts);
    out_.back().expert = true;
  }
  void table(const std::string& suffix, std::int64_t rows, std::int64_t columns, Cut cut,
             double deviation) {  // embeddings: no decay
    out_.push_back(
        {prefix_ + suffix, layer_, {rows, columns}, cut, Initial::normal, deviation, false});
  }
  void zero_matrix(const std::string& suffix, std::int64_t rows, std::int64_t columns) {
    out_.push_back(
        {prefix_ + suffix, layer_, {rows, columns}, Cut::replicated, Initial::zeros, 0.0, true});
  }
  void vector(const std::string& suffix, std::int64_t size, Cut cut, Initial initial) {
    out_.push_back({prefix_ + suffix, layer_, {size}, cut, initial, 0.0, false});
  }
  void norm(const std::string& name, const Module& m) {
    vector(name + ".weight", m.hidden, Cut::replicated, Initial::ones);
    if (m.norm == Norm::layer) vector(name + ".bias", m.hidden, Cut::replicated, Initial::zeros);
  }
  // One weight for all heads: every tensor-parallel rank sees its own heads only.
  void head_norm(const std::string& name, const Module& m) {
    vector(name + ".weight", m.head_dim, Cut::replicated, Initial::ones);
    out_.back().partial = Partial::always;
  }

 private:
  std::vector<Parameter>& out_;
  std::string prefix_;
  int layer_;
};

void sparse_feed_forward(const Module& m, LayerParameters& add) {
  add.matrix("router.weight", m.experts, m.hidden, Cut::replicated);
  add.experts("experts.gate_up.weight", m, 2 * std::int64_t{m.expert_ffn}, m.hidden, Cut::rows);
  add.experts("experts.down.weight", m, m.hidden, m.expert_ffn, Cut::columns);
  if (m.shared_ffn == 0) return;
  add.matrix("shared.gate_up.weight", 2 * std::int64_t{m.shared_ffn}, m.hidden, Cut::rows);
  add.matrix("shared.down.weight", m.hidden, m.shared_ffn, Cut::columns);
}

void latent_projections(const Module& m, LayerParameters& add) {
  const std::int64_t queries = std::int64_t{m.heads} * (m.head_dim + m.rotary_dim);
  if (m.query_rank > 0) {
    add.matrix("q_down.weight", m.query_rank, m.hidden, Cut::replicated);
    add.vector("q_down_norm.weight", m.query_rank, Cut::replicated, Initial::ones);
  }
  add.matrix("q_up.weight", queries, m.query_rank > 0 ? m.query_rank : m.hidden, Cut::rows);
  add.matrix("kv_down.weight", m.key_value_rank + m.rotary_dim, m.hidden, Cut::replicated);
  add.vector("kv_down_norm.weight", m.key_value_rank, Cut::replicated, Initial::ones);
  add.matrix("kv_up.weight", 2 * std::int64_t{m.heads} * m.head_dim, m.key_value_rank, Cut::rows);
}

void transformer_block(const Module& m, LayerParameters add) {
  const std::int64_t width = std::int64_t{m.heads} * m.head_dim;
  add.norm("norm1", m);
  if (m.key_value_rank > 0) {
    latent_projections(m, add);
  } else {
    add.fused("qkv.weight", m, m.hidden);
    if (m.attention_bias || m.qkv_bias) add.fused("qkv.bias", m, 0);
  }
  if (m.qk_norm) {
    add.head_norm("q_norm", m);
    add.head_norm("k_norm", m);
  }
  add.matrix_and_bias("out", m.hidden, width, Cut::columns, m.attention_bias);
  add.norm("norm2", m);
  if (m.experts > 0) {
    sparse_feed_forward(m, add);
  } else if (m.gated) {
    add.matrix_and_bias("gate_up", 2 * std::int64_t{m.ffn}, m.hidden, Cut::rows, m.mlp_bias);
    add.matrix_and_bias("down", m.hidden, m.ffn, Cut::columns, m.mlp_bias);
  } else {
    add.matrix_and_bias("fc1", m.ffn, m.hidden, Cut::rows, m.mlp_bias);
    add.matrix_and_bias("fc2", m.hidden, m.ffn, Cut::columns, m.mlp_bias);
  }
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
  add.matrix_and_bias("out", m.hidden, width, Cut::columns, true);
  if (m.condition > 0) {
    add.vector("cross_norm.weight", m.hidden, Cut::replicated, Initial::ones);
    add.vector("cross_norm.bias", m.hidden, Cut::replicated, Initial::zeros);
    add.matrix_and_bias("cross_query", width, m.hidden, Cut::rows, true);
    add.matrix_and_bias("cross_key_value", 2 * width, m.condition, Cut::rows,
                        true);  // by head [k | v]
    add.matrix_and_bias("cross_out", m.hidden, width, Cut::columns, true);
  }
  add.matrix_and_bias("fc1", m.ffn, m.hidden, Cut::rows, true);
  add.matrix_and_bias("fc2", m.hidden, m.ffn, Cut::columns, true);
}

void patch_embedding(const Module& m, LayerParameters add) {
  const std::int64_t side = m.image_size / m.patch;
  add.matrix("weight", m.hidden, std::int64_t{m.channels} * m.patch * m.patch, Cut::replicated);
  add.vector("bias", m.hidden, Cut::replicated, Initial::zeros);
  if (m.class_token) add.table("class_token", 1, m.hidden, Cut::replicated, kPositionDeviation);
  if (!m.rotary)
    add.table("position", side * side + (m.class_token ? 1 : 0), m.hidden, Cut::replicated,
              kPositionDeviation);
}

// Columns of a convolution's matrix: (frame of the three, input channel).
void audio_embedding(const Module& m, LayerParameters add) {
  add.matrix_and_bias("conv1", m.hidden, 3 * std::int64_t{m.mel_bins}, Cut::replicated, true);
  add.matrix_and_bias("conv2", m.hidden, 3 * std::int64_t{m.hidden}, Cut::replicated, true);
}

// A tied matrix serves as an output matrix too, so it starts as one.
void token_table(const Module& m, LayerParameters add) {
  const double deviation = m.tied ? 1 / std::sqrt(static_cast<double>(m.hidden)) : kTokenDeviation;
  add.table("weight", m.vocab, m.hidden, Cut::rows, deviation);
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
      case LayerKind::patch_embedding:
        patch_embedding(module, {out, module.name + ".patch_embedding.", layer});
        break;
      case LayerKind::audio_embedding:
        audio_embedding(module, {out, module.name + ".", layer});
        break;
      case LayerKind::encoder_block:
      case LayerKind::decoder_block:
        transformer_block(module, {out, block, layer});
        break;
      case LayerKind::encoder_norm:
        LayerParameters(out, module.name + ".", layer).norm("norm", module);
        break;
      case LayerKind::projector_mlp: {
        LayerParameters add(out, module.name + ".", layer);
        add.matrix_and_bias("fc1", module.projector_hidden, module.projector_in, Cut::rows, true);
        add.matrix_and_bias("fc2", module.projector_out, module.projector_hidden, Cut::columns,
                            true);
        break;
      }
      case LayerKind::projector_linear:
        LayerParameters(out, module.name + ".", layer)
            .matrix_and_bias("fc", module.projector_out, module.projector_in, Cut::replicated,
                             true);
        break;
      case LayerKind::token_embedding:
        token_table(module, {out, module.name + ".embedding.", layer});
        out.back().tied = module.tied;
        break;
      case LayerKind::language_head: {
        LayerParameters add(out, module.name + ".head.", layer);
        add.norm("norm", module);
        if (!module.tied) {
          add.matrix("output.weight", module.vocab, module.hidden, Cut::rows);
        } else if (range.begin > 0) {
          token_table(module, {out, module.name + ".embedding.", layer});
          out.back().tied = out.back().copy = true;
        }
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
