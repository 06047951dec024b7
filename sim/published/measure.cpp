#include "sim/published/measure.h"

#include "shared/error.h"

namespace polyphony::sim {
namespace {

// Number of weights that one token uses, without the embedding table.
double used_weights(const Module& m) {
  const double width = static_cast<double>(m.heads) * m.head_dim,
               keys = static_cast<double>(m.kv_heads) * m.head_dim, h = m.hidden;
  const double sparse = m.experts > 0 ? 1 - static_cast<double>(m.dense_blocks) / m.layers : 0;
  const double feed = feed_forward_weights(m) + sparse * h * m.experts;
  if (m.key_value_rank == 0) return m.layers * (h * (2 * width + 2 * keys) + feed) + h * m.vocab;
  const double wide = static_cast<double>(m.heads) * (m.head_dim + m.rotary_dim);
  const double queries = m.query_rank > 0 ? m.query_rank * (h + wide) : h * wide;
  const double latent = m.key_value_rank * (h + 2 * width) + h * m.rotary_dim;
  return m.layers * (queries + latent + h * width + feed) + h * m.vocab;
}

bool is_plain(const Module& m) {
  return !m.gated && m.experts == 0 && m.kv_heads == m.heads && m.ffn == 4 * m.hidden;
}

// The peak to which mfu and hfu refer, as stated in their unit: 312 TFLOP/s.
constexpr double kUtilizationPeak = 312e12;

// Returns step time · value of the metric, which is constant for a row.
double work_of(const PublishedRow& row, const Module& module) {
  const double gpus = *row.gpus;
  switch (row.metric) {
    case Metric::tokens_per_sec_per_gpu:
      return static_cast<double>(*row.global_batch) * *row.seq / gpus;
    case Metric::model_tflops_per_gpu:
      return published_flops(row, module, false).value / gpus / 1e12;
    case Metric::hardware_tflops_per_gpu:
      return published_flops(row, module, true).value / gpus / 1e12;
    case Metric::mfu:
      return published_flops(row, module, false).value / gpus / kUtilizationPeak * 100;
    case Metric::hfu:
      return published_flops(row, module, true).value / gpus / kUtilizationPeak * 100;
    case Metric::iteration_time:
    case Metric::peak_memory:
    case Metric::peak_reserved_memory:
    case Metric::activation_memory_first_stage:
    case Metric::activation_memory_vs_tp_baseline:
    case Metric::param_plus_optimizer_memory:
      break;
  }
  POLYPHONY_CHECK(false, row.id << " is not a rate");
  return 0;
}

}  // namespace

double feed_forward_weights(const Module& m) {
  const double dense = (m.gated ? 3.0 : 2.0) * m.hidden * m.ffn;
  if (m.experts == 0) return dense;
  const double sparse =
      3.0 * m.hidden * (static_cast<double>(m.experts_per_token) * m.expert_ffn + m.shared_ffn);
  return (m.dense_blocks * dense + (m.layers - m.dense_blocks) * sparse) / m.layers;
}

Flops published_flops(const PublishedRow& row, const Module& m, bool hardware) {
  const double samples = *row.global_batch, s = *row.seq, h = m.hidden, layers = m.layers;
  const bool full = row.recompute.starts_with("full"),
             selective = row.recompute.starts_with("selective");
  if (!is_plain(m)) {
    // Multiplications of queries with keys, and of scores with values, over half of the square.
    const double width = static_cast<double>(m.heads) * (2 * m.head_dim + m.rotary_dim);
    const double head = 2 * h * m.vocab;
    const double blocks = 2 * used_weights(m) - head + layers * s * width;
    return Flops(samples * s * ((hardware && full ? 4 : 3) * blocks + 3 * head));
  }
  const double unit = samples * layers * s * h * h;
  if (hardware && full) return Flops(96 * unit * (1 + s / (6 * h) + m.vocab / (16 * layers * h)));
  const double scores = hardware && selective ? s / (3 * h) : s / (6 * h);
  return Flops(72 * unit * (1 + scores + m.vocab / (12 * layers * h)));
}

Seconds step_of(const PublishedRow& row, const Module& module, double value) {
  if (row.metric == Metric::iteration_time) return Seconds(row.unit == "ms" ? value / 1e3 : value);
  return Seconds(work_of(row, module) / value);
}

double value_of(const PublishedRow& row, const Module& module, Seconds step) {
  if (row.metric == Metric::iteration_time) return step.count() * (row.unit == "ms" ? 1e3 : 1);
  return work_of(row, module) / step.count();
}

}  // namespace polyphony::sim
