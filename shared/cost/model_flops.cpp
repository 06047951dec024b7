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

Flops megatron_flops(const Module& m, double sequences, double length, CountedAttention counted) {
  const double h = m.hidden, blocks = m.layers;
  const double width = m.heads * m.head_dim / h;
  const double ffn = m.experts > 0 ? m.experts_per_token * m.expert_ffn + m.shared_ffn : m.ffn;
  const double square = counted == CountedAttention::half ? length / h / 2 : length / h;
  const double attention = (1 + static_cast<double>(m.kv_heads) / m.heads + square) * width;
  const double feed_forward = ffn / h * (m.gated ? 1.5 : 1);
  const double logits = m.vocab / (2 * blocks * h);
  return Flops(12 * sequences * length * blocks * h * h * (attention + feed_forward + logits));
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
