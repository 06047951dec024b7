// One published measurement: a model, a layout, a machine, and one measured number. The fields are
// the columns of scenarios/published/*.csv, described in scenarios/published/README.md. A blank or
// absent value means that the source does not state it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/text/csv.h"

namespace polyphony::sim {

enum class Metric : std::uint8_t {
  iteration_time,
  tokens_per_sec_per_gpu,
  model_tflops_per_gpu,
  hardware_tflops_per_gpu,
  mfu,
  hfu,
  peak_memory,           // allocated
  peak_reserved_memory,  // reserved by the caching allocator, including unused parts
  activation_memory_first_stage,
  activation_memory_vs_tp_baseline,
  param_plus_optimizer_memory,
};
const char* name(Metric metric);
bool is_memory(Metric metric);

struct PublishedRow {
  std::string id, block;  // block: the id up to the first "_"
  std::string file;
  std::size_t line = 0;
  std::string source, model, gpu_type, recompute, precision, shard, attention, mlp, trainable,
      attention_kind, offload, overlap, intra_node, inter_node, variant, software, stack,
      stack_traits, mixers, measured_on, family, duplicate_of, outlier;
  std::optional<int> layers, hidden, heads, kv_heads, ffn, vocab, seq, gpus, tp, cp, pp, vpp, dp,
      ep, microbatch, global_batch, shard_ranks, experts, topk, moe_ffn, shared_experts, head_dim,
      key_value_rank, query_rank, rotary_dim, sliding_window, dense_layers, dense_ffn;
  std::optional<bool> sequence_parallel, tied_embeddings, qk_norm;
  std::vector<std::string> assumed;  // columns whose values are assumptions
  Metric metric = Metric::iteration_time;
  double measured = 0;
  std::string unit;

  // Returns whether only columns are assumed that hardly affect a step: attention, vocab,
  // tied_embeddings, inter_node, and precision (assumed only where all runs of a block share it).
  bool complete() const;
};

// Parses the text of a CSV file; returns one row per line. Names of columns that are not known are
// added to `unknown`. Throws InputError if a column id, measured_metric, measured_value or unit is
// missing, for text where a number is expected, an empty or repeated id, an unknown metric or unit,
// and a measurement that is not positive.
std::vector<PublishedRow> read_published(const std::string& text, const std::string& file,
                                         std::vector<std::string>& unknown);
// Appends the rows of a further file to those of others. Throws InputError as above, and if an id
// is in another file too.
void add_published(const std::string& text, const std::string& file,
                   std::vector<PublishedRow>& rows, std::vector<std::string>& unknown);

}  // namespace polyphony::sim
