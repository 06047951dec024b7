#include "sim/published/row.h"

#include <algorithm>
#include <map>
#include <set>

namespace polyphony::sim {
namespace {

struct MetricName {
  const char* text;
  Metric metric;
  std::vector<std::string> units;
};

const std::vector<MetricName>& metric_names() {
  static const std::vector<std::string> memory{"GiB", "GB"};
  static const std::vector<MetricName> names{
      {"iteration_time", Metric::iteration_time, {"s", "ms"}},
      {"tokens_per_sec_per_gpu", Metric::tokens_per_sec_per_gpu, {"tok/s/GPU"}},
      {"model_tflops_per_gpu", Metric::model_tflops_per_gpu, {"TFLOP/s/GPU"}},
      {"hardware_tflops_per_gpu", Metric::hardware_tflops_per_gpu, {"TFLOP/s/GPU"}},
      {"mfu", Metric::mfu, {"% of 312 TFLOP/s"}},
      {"hfu", Metric::hfu, {"% of 312 TFLOP/s"}},
      {"peak_allocated_memory", Metric::peak_memory, memory},
      {"peak_memory", Metric::peak_memory, memory},
      {"peak_reserved_memory", Metric::peak_reserved_memory, memory},
      {"activation_memory_first_stage", Metric::activation_memory_first_stage, memory},
      {"activation_memory_vs_tp_baseline", Metric::activation_memory_vs_tp_baseline, {"%"}},
      {"param_plus_optimizer_memory", Metric::param_plus_optimizer_memory, memory},
  };
  return names;
}

struct TextColumn {
  const char* name;
  std::string PublishedRow::* member;
};
constexpr TextColumn kTexts[] = {{"source", &PublishedRow::source},
                                 {"model", &PublishedRow::model},
                                 {"gpu_type", &PublishedRow::gpu_type},
                                 {"recompute", &PublishedRow::recompute},
                                 {"precision", &PublishedRow::precision},
                                 {"shard", &PublishedRow::shard},
                                 {"attention", &PublishedRow::attention},
                                 {"mlp", &PublishedRow::mlp},
                                 {"trainable", &PublishedRow::trainable},
                                 {"attention_kind", &PublishedRow::attention_kind},
                                 {"offload", &PublishedRow::offload},
                                 {"intra_node", &PublishedRow::intra_node},
                                 {"overlap", &PublishedRow::overlap},
                                 {"inter_node", &PublishedRow::inter_node},
                                 {"variant", &PublishedRow::variant},
                                 {"software", &PublishedRow::software},
                                 {"measured_on", &PublishedRow::measured_on},
                                 {"stack", &PublishedRow::stack},
                                 {"stack_traits", &PublishedRow::stack_traits},
                                 {"mixers", &PublishedRow::mixers},

                                 {"family", &PublishedRow::family},
                                 {"duplicate_of", &PublishedRow::duplicate_of},
                                 {"outlier", &PublishedRow::outlier}};

struct CountColumn {
  const char* name;
  std::optional<int> PublishedRow::* member;
};
constexpr CountColumn kCounts[] = {{"layers", &PublishedRow::layers},
                                   {"hidden", &PublishedRow::hidden},
                                   {"heads", &PublishedRow::heads},
                                   {"kv_heads", &PublishedRow::kv_heads},
                                   {"ffn", &PublishedRow::ffn},
                                   {"vocab", &PublishedRow::vocab},
                                   {"seq", &PublishedRow::seq},
                                   {"gpus", &PublishedRow::gpus},
                                   {"tp", &PublishedRow::tp},
                                   {"cp", &PublishedRow::cp},
                                   {"pp", &PublishedRow::pp},
                                   {"vpp", &PublishedRow::vpp},
                                   {"dp", &PublishedRow::dp},
                                   {"ep", &PublishedRow::ep},
                                   {"microbatch", &PublishedRow::microbatch},
                                   {"global_batch", &PublishedRow::global_batch},
                                   {"shard_ranks", &PublishedRow::shard_ranks},
                                   {"experts", &PublishedRow::experts},
                                   {"topk", &PublishedRow::topk},
                                   {"moe_ffn", &PublishedRow::moe_ffn},
                                   {"shared_experts", &PublishedRow::shared_experts},
                                   {"head_dim", &PublishedRow::head_dim},
                                   {"key_value_rank", &PublishedRow::key_value_rank},
                                   {"query_rank", &PublishedRow::query_rank},
                                   {"rotary_dim", &PublishedRow::rotary_dim},
                                   {"sliding_window", &PublishedRow::sliding_window},
                                   {"dense_layers", &PublishedRow::dense_layers},
                                   {"dense_ffn", &PublishedRow::dense_ffn}};

// Columns that are read individually below, or not used by the program.
const std::set<std::string> kOthers{"id",      "measured_metric",   "measured_value",
                                    "unit",    "sequence_parallel", "tied_embeddings",
                                    "assumed", "config_key",        "notes",
                                    "qk_norm"};

void read_metric(const CsvRow& line, PublishedRow& row) {
  const std::string text = line.text("measured_metric");
  const auto& names = metric_names();
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const MetricName& n) { return text == n.text; });
  if (found == names.end()) {
    std::string all;
    for (const MetricName& n : names) all += (all.empty() ? "" : ", ") + std::string(n.text);
    line.refuse("measured_metric", "\"" + text + "\" is not a metric", "one of " + all);
  }
  row.metric = found->metric;
  row.unit = line.text("unit");
  if (std::find(found->units.begin(), found->units.end(), row.unit) == found->units.end()) {
    std::string all;
    for (const std::string& unit : found->units) all += (all.empty() ? "" : " or ") + unit;
    line.refuse("unit", "\"" + row.unit + "\" is not a unit of " + text, "write " + all);
  }
  const std::optional<double> value = line.number("measured_value");
  if (!value || *value <= 0)
    line.refuse("measured_value", value ? "is not positive" : "is blank",
                "give the measured value, above 0");
  row.measured = *value;
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text + by) {
    if (c != by) {
      part += c;
    } else if (!part.empty()) {
      parts.push_back(part);
      part.clear();
    }
  }
  return parts;
}

}  // namespace

const char* name(Metric metric) {
  for (const MetricName& n : metric_names())
    if (n.metric == metric) return n.text;
  return "?";
}

bool is_memory(Metric metric) {
  switch (metric) {
    case Metric::iteration_time:
    case Metric::tokens_per_sec_per_gpu:
    case Metric::model_tflops_per_gpu:
    case Metric::hardware_tflops_per_gpu:
    case Metric::mfu:
    case Metric::hfu:
      return false;
    case Metric::peak_memory:
    case Metric::peak_reserved_memory:
    case Metric::activation_memory_first_stage:
    case Metric::activation_memory_vs_tp_baseline:
    case Metric::param_plus_optimizer_memory:
      return true;
  }
  return false;
}

bool PublishedRow::complete() const {
  static const std::set<std::string> harmless{"attention", "vocab", "tied_embeddings", "inter_node",
                                              "precision"};
  return std::all_of(assumed.begin(), assumed.end(),
                     [](const std::string& column) { return harmless.count(column) > 0; });
}

std::vector<PublishedRow> read_published(const std::string& text, const std::string& file,
                                         std::vector<std::string>& unknown) {
  const CsvTable table = read_csv(text, file);
  const auto has = [&](const std::string& column) {
    return std::find(table.columns.begin(), table.columns.end(), column) != table.columns.end();
  };
  for (const char* needed : {"id", "measured_metric", "measured_value", "unit"})
    if (!has(needed))
      throw InputError(file, "line 1", std::string("column ") + needed + " is missing",
                       "scenarios/published/README.md names the columns");
  for (const std::string& column : table.columns) {
    const auto named = [&](const auto& known) { return column == known.name; };
    if (!kOthers.count(column) && std::none_of(std::begin(kTexts), std::end(kTexts), named) &&
        std::none_of(std::begin(kCounts), std::end(kCounts), named))
      unknown.push_back(column);
  }
  std::vector<PublishedRow> rows;
  std::set<std::string> ids;
  for (const CsvTable::Line& cells : table.lines) {
    const CsvRow line(table, cells);
    PublishedRow row;
    row.file = file;
    row.line = line.line();
    row.id = line.text("id");
    if (row.id.empty()) line.refuse("id", "is blank", "name the row, such as mpt_7b_8gpus");
    if (!ids.insert(row.id).second)
      line.refuse("id", "\"" + row.id + "\" appears twice", "name each row once");
    row.block = row.id.substr(0, row.id.find('_'));
    for (const TextColumn& column : kTexts) row.*column.member = line.text(column.name);
    for (const CountColumn& column : kCounts) row.*column.member = line.integer(column.name);
    row.sequence_parallel = line.boolean("sequence_parallel");
    row.tied_embeddings = line.boolean("tied_embeddings");
    row.qk_norm = line.boolean("qk_norm");
    row.assumed = split(line.text("assumed"), '+');
    read_metric(line, row);
    rows.push_back(std::move(row));
  }
  return rows;
}

void add_published(const std::string& text, const std::string& file,
                   std::vector<PublishedRow>& rows, std::vector<std::string>& unknown) {
  std::map<std::string, std::string> seen;
  for (const PublishedRow& row : rows) seen[row.id] = row.file;
  for (PublishedRow& row : read_published(text, file, unknown)) {
    if (const auto first = seen.find(row.id); first != seen.end())
      throw InputError(file, "line " + std::to_string(row.line) + ", column id",
                       "\"" + row.id + "\" is in " + first->second + " too",
                       "each row may be given once");
    rows.push_back(std::move(row));
  }
}

}  // namespace polyphony::sim
