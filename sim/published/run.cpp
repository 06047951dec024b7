#include "sim/published/run.h"

#include <algorithm>

#include "shared/cost/devices.h"
#include "shared/cost/hardware_json.h"
#include "shared/plan/assign.h"
#include "sim/predict.h"
#include "sim/published/measure.h"

namespace polyphony::sim {
namespace {

constexpr std::uint32_t kMostUnfolded = 64;  // ranks

std::string device_key(const HardwareProfile& profile) {
  const auto dash = profile.name.rfind('-');
  return profile.name.substr(0, dash);
}

std::variant<Prediction, Infeasible> predict_case(const PublishedCase& in) {
  auto folded = predict_folded(in.scenario, in.layout, in.profile);
  if (std::holds_alternative<Prediction>(folded) ||
      static_cast<std::uint32_t>(in.scenario.cluster.ranks()) > kMostUnfolded)
    return folded;
  return predict(in.scenario, in.layout, typical_batch(in.scenario), in.profile,
                 Predictor::estimate);
}

Bytes activations(const Prediction& prediction, std::size_t rank) {
  const auto& at = prediction.memory[rank].at_peak;
  return at[static_cast<std::size_t>(BufferKind::tape)] +
         at[static_cast<std::size_t>(BufferKind::workspace)];
}

double in_unit(const PublishedRow& row, Bytes bytes) {
  const auto value = static_cast<double>(bytes.value);
  return value / (row.unit == "GB" ? 1e9 : static_cast<double>(std::int64_t{1} << 30));
}

// The tensor-parallel baseline of activation_memory_vs_tp_baseline: neither sequence parallelism
// nor recomputation.
Bytes baseline_activations(PublishedCase in) {
  in.layout.modules.front().sp = false;
  in.layout.modules.front().recompute = Recompute::none;
  const auto prediction = predict_case(in);
  return activations(std::get<Prediction>(prediction), 0);
}

double memory_value(const PublishedRow& row, const PublishedCase& in,
                    const Prediction& prediction) {
  Bytes most{};
  const auto state = [&](std::size_t rank) {
    const auto& at = prediction.memory[rank].at_peak;
    return at[static_cast<std::size_t>(BufferKind::parameter)] +
           at[static_cast<std::size_t>(BufferKind::gradient)] +
           at[static_cast<std::size_t>(BufferKind::optimizer)];
  };
  switch (row.metric) {
    case Metric::activation_memory_first_stage:
      return in_unit(row, activations(prediction, 0));
    case Metric::activation_memory_vs_tp_baseline:
      return 100 * static_cast<double>(activations(prediction, 0).value) /
             static_cast<double>(baseline_activations(in).value);
    case Metric::param_plus_optimizer_memory:
      for (std::size_t r = 0; r < prediction.memory.size(); ++r) most = std::max(most, state(r));
      return in_unit(row, most);
    case Metric::peak_memory:
      for (const RankMemory& memory : prediction.memory) most = std::max(most, memory.peak);
      return in_unit(row, most);
    case Metric::iteration_time:
    case Metric::tokens_per_sec_per_gpu:
    case Metric::model_tflops_per_gpu:
    case Metric::hardware_tflops_per_gpu:
    case Metric::mfu:
    case Metric::hfu:
      break;
  }
  return 0;
}

// Time · e of the naive baseline.
double naive_work(const PublishedRow& row, const PublishedCase& in) {
  const Module& m = in.scenario.model.modules.front();
  const ModuleLayout& grid = in.layout.modules.front();
  const double tokens = static_cast<double>(*row.global_batch) * *row.seq, h = m.hidden;
  const double width = static_cast<double>(m.heads) * m.head_dim,
               keys = static_cast<double>(m.kv_heads) * m.head_dim;
  const double feed = m.experts > 0
                          ? 3 * h * (double(m.experts_per_token) * m.expert_ffn + m.shared_ffn)
                          : (m.gated ? 3 : 2) * h * m.ffn;
  const double layers =
      2.0 * m.layers * (h * (2 * width + 2 * keys) + feed) + 2.0 * m.layers * h * *row.seq;
  double per_token = 3 * (layers + 2 * h * m.vocab);
  if (grid.recompute == Recompute::full) per_token += layers;
  const NumberFormat format = in.profile.stack.matrix.value_or(in.scenario.training.precision);
  const double bubble = 1 + (grid.pp - 1.0) / (grid.vpp * in.layout.microbatches);
  return tokens * per_token / (*row.gpus * peak(in.profile.device, format).value) * bubble;
}

RowResult run_row(const PublishedRow& row, const Overrides& overrides) {
  RowResult result;
  result.row = row;
  auto made = make_case(row);
  if (const auto* skipped = std::get_if<Skipped>(&made)) {
    result.reason = skipped->reason;
    return result;
  }
  auto& in = std::get<PublishedCase>(made);
  apply_overrides(overrides, in.profile);
  const auto predicted = predict_case(in);
  if (const auto* no = std::get_if<Infeasible>(&predicted)) {
    result.reason = no->reason;
    return result;
  }
  const auto& prediction = std::get<Prediction>(predicted);
  if (is_memory(row.metric)) {
    result.predicted = memory_value(row, in, prediction);
    result.error = result.predicted / row.measured - 1;
    return result;
  }
  const Module& module = in.scenario.model.modules.front();
  result.step = prediction.step();
  result.measured_step = step_of(row, module, row.measured);
  result.predicted = value_of(row, module, result.step);
  result.error = result.step / result.measured_step - 1;
  result.naive = Seconds(naive_work(row, in));
  result.naive_efficiency = result.naive->count() / result.measured_step.count();
  return result;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

bool counts(const RowResult& result) {
  return result.used() && result.row.duplicate_of.empty() && result.row.outlier.empty();
}

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
    std::string key = row.family + "|" + row.software + "|" + row.precision;
    for (const auto& count : {row.layers, row.hidden, row.seq, row.gpus, row.global_batch})
      key += "|" + std::to_string(count.value_or(0));
    questions[key].push_back(result);
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

}  // namespace

void apply_overrides(const Overrides& overrides, HardwareProfile& profile) {
  for (const auto& [name, value] : overrides) {
    const auto dot = name.find('.');
    const std::string who = name.substr(0, dot), key = name.substr(dot + 1);
    if (who == device_key(profile)) set_number(profile, key, value);
    if (who == profile.stack.name) set_number(profile.stack, key, value);
  }
}

void fit_naive(std::vector<RowResult>& results) {
  std::vector<std::optional<Seconds>> steps(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].naive) continue;
    std::vector<double> others;
    for (std::size_t j = 0; j < results.size(); ++j)
      if (i != j && results[j].naive && counts(results[j]) &&
          same_baseline(results[i].row, results[j].row))
        others.push_back(results[j].naive_efficiency);
    if (!others.empty()) steps[i] = *results[i].naive / median(others);
  }
  for (std::size_t i = 0; i < results.size(); ++i) results[i].naive = steps[i];
}

void check_overrides(const Overrides& overrides) {
  for (const auto& [name, value] : overrides) {
    const auto dot = name.find('.');
    const std::string who = name.substr(0, dot),
                      key = dot == std::string::npos ? "" : name.substr(dot + 1);
    const SoftwareStack* stack = find_stack(who);
    const HardwareProfile* profile = find_profile(default_profile(who));
    if (stack == nullptr && profile == nullptr)
      throw InputError(
          "--set", "", "\"" + who + "\" is neither a device nor a stack",
          "write DEVICE.KEY=VALUE or STACK.KEY=VALUE, such as h100.gemm_efficiency=0.7");
    SoftwareStack a = stack ? *stack : SoftwareStack{};
    HardwareProfile b = profile ? *profile : HardwareProfile{};
    if (!(stack && set_number(a, key, value)) && !(profile && set_number(b, key, value)))
      throw InputError("--set", "", who + " has no number \"" + key + "\"",
                       "polyphony validate --help names the keys");
  }
}

std::vector<RowResult> run_published(const std::vector<PublishedRow>& rows,
                                     const Overrides& overrides,
                                     const std::function<void(double)>& progress) {
  std::vector<RowResult> results;
  results.reserve(rows.size());
  for (const PublishedRow& row : rows) {
    results.push_back(run_row(row, overrides));
    progress(static_cast<double>(results.size()) / static_cast<double>(rows.size()));
  }
  return results;
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
      if (counts(result) && result.row.block == summary.block &&
          is_memory(result.row.metric) == summary.memory)
        rows.push_back(&result);
    summary.complete = group_of(rows, true);
    summary.assumed = group_of(rows, false);
    if (!summary.memory) rank_layouts(rows, summary);
  }
  return summaries;
}

}  // namespace polyphony::sim
