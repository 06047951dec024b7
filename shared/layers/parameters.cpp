#include "shared/layers/parameters.h"

#include <cmath>

#include "shared/error.h"
#include "shared/layers/layer_parameters.h"
#include "shared/layers/lora.h"
#include "shared/random.h"

namespace polyphony {
namespace {

void sparse_feed_forward(const Module& m, LayerParameters& add) {
  const std::int64_t inner = 2 * std::int64_t{m.expert_ffn};
  add.matrix_and_bias("router", m.experts, m.hidden, Cut::replicated, m.expert_bias);
  add.experts("experts.gate_up.weight", m, inner, m.hidden, Cut::rows);
  if (m.expert_bias) add.expert_bias("experts.gate_up.bias", m, inner, Cut::rows);
  add.experts("experts.down.weight", m, m.hidden, m.expert_ffn, Cut::columns);
  if (m.expert_bias) add.expert_bias("experts.down.bias", m, m.hidden, Cut::replicated);
  if (m.shared_ffn == 0) return;
  add.matrix("shared.gate_up.weight", 2 * std::int64_t{m.shared_ffn}, m.hidden, Cut::rows);
  add.matrix("shared.down.weight", m.hidden, m.shared_ffn, Cut::columns);
}

void latent_attention(const Module& m, LayerParameters& add) {
  const std::int64_t queries = std::int64_t{m.heads} * (m.head_dim + m.rotary_dim);
  if (m.query_rank > 0) {
    add.matrix("q_down.weight", m.query_rank, m.hidden, Cut::replicated);
    add.vector("q_down_norm.weight", m.query_rank, Cut::replicated, Initial::ones);
  }
  add.matrix("q_up.weight", queries, m.query_rank > 0 ? m.query_rank : m.hidden, Cut::rows);
  add.matrix("kv_down.weight", m.key_value_rank + m.rotary_dim, m.hidden, Cut::replicated);
  add.vector("kv_down_norm.weight", m.key_value_rank, Cut::replicated, Initial::ones);
  // By head [k | v].
  add.matrix("kv_up.weight", std::int64_t{m.heads} * (m.head_dim + value_width(m)),
             m.key_value_rank, Cut::rows);
  add.matrix("out.weight", m.hidden, std::int64_t{m.heads} * value_width(m), Cut::columns);
}

// Of each key head all of its rows together: in the matrix [q | k | v of its value heads | their
// gates | their β | their decays], in the convolution [q | k | v].
void linear_attention(const Module& m, LayerParameters& add) {
  const std::int64_t keys = m.linear_key_heads, values = m.linear_value_heads,
                     width = m.linear_head_dim;
  add.matrix("linear_in.weight", 2 * (keys + values) * width + 2 * values, m.hidden, Cut::rows);
  add.matrix("linear_conv.weight", (2 * keys + values) * width, m.linear_conv, Cut::rows);
  add.vector("linear_decay.weight", values, Cut::rows, Initial::zeros);
  add.vector("linear_decay.bias", values, Cut::rows, Initial::ones);
  add.head_norm("linear_norm", m.linear_head_dim);
  add.matrix("out.weight", m.hidden, values * width, Cut::columns);
}

void self_attention(const Module& m, LayerParameters& add) {
  const std::int64_t width = std::int64_t{m.heads} * m.head_dim;
  add.fused("qkv.weight", m, m.hidden);
  if (m.attention_bias || m.qkv_bias) add.fused("qkv.bias", m, 0);
  if (m.qk_norm) {
    add.head_norm("q_norm", m.head_dim);
    add.head_norm("k_norm", m.head_dim);
  }
  if (m.attention_sinks) add.vector("sinks.weight", m.heads, Cut::rows, Initial::zeros);
  add.matrix_and_bias("out", m.hidden, width, Cut::columns, m.attention_bias);
}

void transformer_block(const Module& m, int block, LayerParameters add) {
  const BlockKind kind = block_at(m, block);
  add.norm("norm1", m);
  switch (kind.attention) {
    case AttentionKind::full:
    case AttentionKind::window:
      self_attention(m, add);
      break;
    case AttentionKind::latent:
      latent_attention(m, add);
      break;
    case AttentionKind::linear:
      linear_attention(m, add);
      break;
  }
  if (m.post_norms) add.norm("post_norm1", m);
  add.norm("norm2", m);
  if (kind.feed_forward == FeedForwardKind::experts) {
    sparse_feed_forward(m, add);
  } else if (m.gated) {
    add.matrix_and_bias("gate_up", 2 * std::int64_t{m.ffn}, m.hidden, Cut::rows, m.mlp_bias);
    add.matrix_and_bias("down", m.hidden, m.ffn, Cut::columns, m.mlp_bias);
  } else {
    add.matrix_and_bias("fc1", m.ffn, m.hidden, Cut::rows, m.mlp_bias);
    add.matrix_and_bias("fc2", m.hidden, m.ffn, Cut::columns, m.mlp_bias);
  }
  if (m.post_norms) add.norm("post_norm2", m);
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
        transformer_block(module, layer - 1, {out, block, layer});
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
