#include "shared/cost/model_flops.h"

#include <algorithm>
#include <numeric>

#include "shared/chunk/expand.h"
#include "shared/chunk/parameters.h"
#include "shared/program/work.h"

namespace polyphony {

Flops model_flops(const Model& model, const Batch& batch, NumberFormat precision) {
  std::vector<std::uint32_t> samples(batch.samples.size());
  std::iota(samples.begin(), samples.end(), 0u);
  Flops total{};
  if (std::any_of(model.modules.begin(), model.modules.end(),
                  [](const Module& module) { return module.abstract.is; }))
    return total;
  ModuleLayout alone;
  for (std::size_t m = 0; m < model.modules.size(); ++m) {
    const ModuleId id(m);
    const Module& module = model.modules[m];
    const LayerRange whole{0, static_cast<std::uint16_t>(layers(module).size())};
    const ChunkContext context = chunk_context(model, id, 0, alone, precision);
    const WorkSize size = work_size(model, id, batch, samples.data(), samples.size());
    total += total_flops(expand(module, whole, Phase::forward, size, context));
    if (needs_backward(model, id))
      total += total_flops(expand(module, whole, Phase::backward, size, context));
  }
  return total;
}

namespace {

// The form up to core 0.11: all blocks alike.
Flops megatron_011_flops(const Module& m, double sequences, double length) {
  const double h = m.hidden, blocks = m.layers;
  const double width = m.heads * m.head_dim / h;
  const double ffn = m.experts > 0 ? m.experts_per_token * m.expert_ffn + m.shared_ffn : m.ffn;
  const double attention = (1 + static_cast<double>(m.kv_heads) / m.heads + length / h) * width;
  const double feed_forward = ffn / h * (m.gated ? 1.5 : 1);
  const double logits = m.vocab / (2 * blocks * h);
  return Flops(12 * sequences * length * blocks * h * h * (attention + feed_forward + logits));
}

// The multiply-adds of a token in one block's attention, of a forward pass.
double megatron_attention(const Module& m, AttentionKind kind, double length) {
  const double h = m.hidden;
  if (kind == AttentionKind::linear) {
    const double d = m.linear_head_dim, keys = d * m.linear_key_heads,
                 values = d * m.linear_value_heads;
    return h * (2 * keys + 2 * values + 2 * m.linear_value_heads) +
           m.linear_conv * (2 * keys + values) + 4 * d * values + h * values;
  }
  const double heads = m.heads, queries = heads * m.head_dim, outputs = heads * value_width(m);
  if (m.key_value_rank > 0) {
    const double rotated = heads * (m.head_dim + m.rotary_dim), rank = m.key_value_rank;
    const double query = m.query_rank > 0 ? m.query_rank * (h + rotated + 1) : h * rotated;
    return query + rank * (h + queries + outputs + 1) + h * m.rotary_dim + outputs * h +
           length * (rotated + outputs) / 2;
  }
  const double gate = m.attention_gate ? queries : 0;
  return h * (queries + 2.0 * m.kv_heads * m.head_dim + gate) + queries * h + length * queries;
}

}  // namespace

Flops megatron_flops(const Module& m, double sequences, double length, CountedAttention counted) {
  if (counted == CountedAttention::full) return megatron_011_flops(m, sequences, length);
  const double matrices = m.gated ? 3 : 2, h = m.hidden;
  double token = h * m.vocab;
  for (int block = 0; block < m.layers; ++block) {
    const BlockKind kind = block_at(m, block);
    const double ffn = kind.feed_forward == FeedForwardKind::experts
                           ? m.experts_per_token * m.expert_ffn + m.shared_ffn
                           : m.ffn;
    token += megatron_attention(m, kind.attention, length) + matrices * ffn * h;
  }
  constexpr double kTrained = 3 * 2;  // forward, two products of the backward; multiply and add
  return Flops(kTrained * sequences * length * token);
}

Flops torchtitan_flops(const Module& m, double sequences, double length) {
  double parameters = static_cast<double>(parameter_count(m));
  // With tied weights, the embedding is also the output matrix, and is counted.
  if (!m.tied) parameters -= static_cast<double>(m.vocab) * m.hidden;
  const double expert = (m.gated ? 3.0 : 2.0) * m.hidden * m.expert_ffn;
  int attending = 0;
  for (int block = 0; block < m.layers; ++block) {
    const BlockKind kind = block_at(m, block);
    // Of the experts, those that a token goes to.
    if (kind.feed_forward == FeedForwardKind::experts)
      parameters -= (m.experts - m.experts_per_token) * expert;
    if (kind.attention != AttentionKind::linear && kind.attention != AttentionKind::convolution)
      ++attending;
  }
  const int key_width = m.key_value_rank > 0 ? m.head_dim + m.rotary_dim : m.head_dim;
  const double attention = 6.0 * attending * m.heads * (key_width + value_width(m)) * length;
  return Flops(sequences * length * (6 * parameters + attention));
}

}  // namespace polyphony
