#include "sim/judged/summary.h"

#include <algorithm>
#include <set>

#include "sim/judged/pairs.h"

namespace polyphony::sim {
namespace {

bool same_baseline(const PublishedRow& a, const PublishedRow& b) {
  return a.block == b.block && a.gpu_type == b.gpu_type && a.precision == b.precision;
}

Group group_of(const std::vector<const RowResult*>& rows, bool complete) {
  std::vector<double> ours, naive;
  for (const RowResult* result : rows) {
    if (result->row.complete() != complete) continue;
    ours.push_back(*result->error);
    if (result->naive) naive.push_back(*result->naive / result->measured_step - 1);
  }
  return {summarize(ours), summarize(naive)};
}

void rank_layouts(const std::vector<const RowResult*>& rows, BlockSummary& summary) {
  std::map<std::string, std::vector<const RowResult*>> families, questions;
  for (const RowResult* result : rows) {
    const PublishedRow& row = result->row;
    families[row.family].push_back(result);
    questions[question_of(row)].push_back(result);
  }
  const auto steps = [](const std::vector<const RowResult*>& list, auto member) {
    std::vector<double> values;
    for (const RowResult* result : list) values.push_back((result->*member).count());
    return values;
  };
  double tau = 0, loss = 0;
  for (const auto& [name, list] : families) {
    if (list.size() < 5) continue;
    const auto value =
        kendall_tau(steps(list, &RowResult::step), steps(list, &RowResult::measured_step));
    if (!value) continue;
    tau += *value;
    ++summary.families;
  }
  for (const auto& [name, list] : questions) {
    if (list.size() < 2) continue;
    loss += regret(steps(list, &RowResult::step), steps(list, &RowResult::measured_step));
    ++summary.questions;
  }
  if (summary.families > 0) summary.tau = tau / static_cast<double>(summary.families);
  if (summary.questions > 0) summary.regret = loss / static_cast<double>(summary.questions);
}

// Returns the device without its memory size, such as "A100".
std::string generation(const std::string& device) {
  std::string text = device.substr(0, device.find('-'));
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string kind_of(const RowResult& result) {
  const PublishedRow& row = result.row;
  if (row.precision == "nvfp4") return "NVFP4";
  return row.experts.value_or(0) > 0 ? "MoE" : "dense";
}

std::string format_of(const PublishedRow& row) {
  for (const char* format : {"nvfp4", "fp8", "fp16", "bf16"})
    if (row.precision.find(format) != std::string::npos) return format;
  return row.precision;
}

// Returns the name of the framework; stacks that share their kernels have one name.
std::string framework_of(const std::string& stack) {
  if (stack == "megatron-core" || stack == "megatron-bridge") return "Megatron Core, Bridge";
  if (stack == "megatron-2021" || stack == "megatron-2022") return "Megatron-LM 2021, 2022";
  return stack;
}

Group whole_group(const std::vector<const RowResult*>& rows) {
  std::vector<double> ours, naive;
  for (const RowResult* result : rows) {
    ours.push_back(*result->error);
    if (result->naive) naive.push_back(*result->naive / result->measured_step - 1);
  }
  return {summarize(ours), summarize(naive)};
}

}  // namespace

void fit_naive(std::vector<RowResult>& results) {
  std::vector<std::optional<Seconds>> steps(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].naive) continue;
    std::vector<double> others;
    for (std::size_t j = 0; j < results.size(); ++j)
      if (i != j && results[j].naive && results[j].counts() &&
          same_baseline(results[i].row, results[j].row))
        others.push_back(results[j].naive_efficiency);
    if (!others.empty()) steps[i] = *results[i].naive / median(others);
  }
  for (std::size_t i = 0; i < results.size(); ++i) results[i].naive = steps[i];
}

std::vector<BlockSummary> summarize_blocks(const std::vector<RowResult>& results) {
  std::vector<BlockSummary> summaries;
  const auto find = [&](const RowResult& result) -> BlockSummary& {
    const bool memory = is_memory(result.row.metric);
    for (BlockSummary& summary : summaries)
      if (summary.block == result.row.block && summary.memory == memory) return summary;
    BlockSummary fresh;
    fresh.block = result.row.block;
    fresh.memory = memory;
    summaries.push_back(fresh);
    return summaries.back();
  };
  for (const RowResult& result : results) {
    BlockSummary& summary = find(result);
    ++summary.rows;
    if (!result.used())
      ++summary.skipped;
    else if (!result.row.duplicate_of.empty())
      ++summary.duplicates;
    else if (!result.row.outlier.empty())
      ++summary.outliers;
  }
  for (BlockSummary& summary : summaries) {
    std::vector<const RowResult*> rows;
    for (const RowResult& result : results)
      if (result.counts() && result.row.block == summary.block &&
          is_memory(result.row.metric) == summary.memory)
        rows.push_back(&result);
    summary.complete = group_of(rows, true);
    summary.assumed = group_of(rows, false);
    if (!summary.memory) rank_layouts(rows, summary);
  }
  return summaries;
}

std::vector<Part> summarize_parts(const std::vector<RowResult>& results) {
  using Rows = std::map<std::string, std::vector<const RowResult*>>;
  std::vector<std::string> blocks;
  std::map<std::string, Rows> by_kind, by_format, across;
  for (const RowResult& result : results) {
    if (!result.counts() || is_memory(result.row.metric)) continue;
    const std::string& block = result.row.block;
    if (!by_kind.count(block)) blocks.push_back(block);
    const std::string kind = generation(result.device) + " " + kind_of(result);
    by_kind[block][kind].push_back(&result);
    by_format[block][format_of(result.row)].push_back(&result);
    across[framework_of(result.stack)][kind].push_back(&result);
  }
  std::vector<Part> parts;
  const auto add = [&](const std::string& of, const Rows& rows) {
    for (const auto& [part, list] : rows) parts.push_back({of, part, whole_group(list)});
  };
  for (const std::string& block : blocks) {
    if (by_kind[block].size() > 1) add(block, by_kind[block]);
    if (by_format[block].size() > 1) add(block, by_format[block]);
  }
  for (const auto& [framework, rows] : across) add(framework, rows);
  return parts;
}

}  // namespace polyphony::sim
