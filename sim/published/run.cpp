#include "sim/published/run.h"

#include <algorithm>

#include "shared/hardware/devices.h"
#include "shared/hardware/hardware_json.h"
#include "shared/scenario/typical_batch.h"
#include "sim/prediction/predict.h"
#include "sim/published/measure.h"
#include "sim/published/reserved.h"

namespace polyphony::sim {
namespace {

constexpr std::uint32_t kMostUnfolded = 64;  // most ranks of a layout that does not fold

std::string device_key(const HardwareProfile& profile) {
  const auto dash = profile.name.rfind('-');
  return profile.name.substr(0, dash);
}

std::variant<Prediction, Infeasible> predict_case(const PublishedCase& in) {
  const PlannedLayout planned = plan_layout(borrow_inputs(in.scenario, in.profile), in.layout);
  auto folded = predict_folded(planned);
  if (std::holds_alternative<Prediction>(folded) ||
      static_cast<std::uint32_t>(in.scenario.cluster.ranks()) > kMostUnfolded)
    return folded;
  return predict(planned, planned.inputs->typical(), Predictor::estimate);
}

// Returns the activations saved on the first rank at its peak.
Bytes activations(const Prediction& prediction) {
  return prediction.memory[0].at_peak[static_cast<std::size_t>(BufferKind::tape)];
}

Bytes state(const RankMemory& memory) {
  return memory.at_peak[static_cast<std::size_t>(BufferKind::parameter)] +
         memory.at_peak[static_cast<std::size_t>(BufferKind::gradient)] +
         memory.at_peak[static_cast<std::size_t>(BufferKind::optimizer)];
}

double in_unit(const PublishedRow& row, Bytes bytes) {
  const auto value = static_cast<double>(bytes.value);
  return value / (row.unit == "GB" ? 1e9 : static_cast<double>(std::int64_t{1} << 30));
}

// Predicts with the smallest vocabulary. The values of arXiv 2205.05198 are for the blocks alone:
// its Figure 1 equals 18·12·L·h²/(t·p) and the formulas of its Table 2 to the byte, without
// embedding and logits.
Prediction blocks_alone(PublishedCase in) {
  in.scenario.model.modules.front().vocab = in.layout.modules.front().tp;
  return std::get<Prediction>(predict_case(in));
}

// Returns the baseline of activation_memory_vs_tp_baseline: tensor parallelism without sequence
// parallelism and without recomputation.
Bytes baseline_activations(PublishedCase in) {
  in.layout.modules.front().sp = false;
  in.layout.modules.front().recompute = Recompute::none;
  return activations(blocks_alone(std::move(in)));
}

bool is_reserved(const PublishedRow& row) {
  return row.metric == Metric::peak_reserved_memory ||
         row.stack_traits.find("reserved-memory") != std::string::npos;
}

double memory_value(const PublishedRow& row, const PublishedCase& in,
                    const Prediction& prediction) {
  Bytes most{};
  switch (row.metric) {
    case Metric::activation_memory_first_stage:
      return in_unit(row, activations(blocks_alone(in)));
    case Metric::activation_memory_vs_tp_baseline:
      return 100 * static_cast<double>(activations(blocks_alone(in)).value) /
             static_cast<double>(baseline_activations(in).value);
    case Metric::param_plus_optimizer_memory:
      for (const RankMemory& memory : blocks_alone(in).memory) most = std::max(most, state(memory));
      return in_unit(row, most);
    case Metric::peak_memory:
    case Metric::peak_reserved_memory:
      if (is_reserved(row)) return in_unit(row, reserved_bytes(in, prediction));
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

// Returns step time · e of the naive baseline: the step time at efficiency 1.
double naive_work(const PublishedRow& row, const PublishedCase& in) {
  const Module& m = in.scenario.model.modules.front();
  const ModuleLayout& grid = in.layout.modules.front();
  const double tokens = static_cast<double>(*row.global_batch) * *row.seq, h = m.hidden;
  const double width = static_cast<double>(m.heads) * m.head_dim,
               keys = static_cast<double>(m.kv_heads) * m.head_dim;
  const double layers = 2.0 * m.layers * (h * (2 * width + 2 * keys) + feed_forward_weights(m)) +
                        2.0 * m.layers * h * *row.seq;
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
  result.device = device_key(in.profile);
  result.stack = in.profile.stack.name;
  result.certainty = in.profile.certainty;
  apply_overrides(overrides, in.profile);
  result.note = in.note;
  const auto predicted = predict_case(in);
  if (const auto* no = std::get_if<Infeasible>(&predicted)) {
    result.reason = no->reason;
    return result;
  }
  const auto& prediction = std::get<Prediction>(predicted);
  if (is_memory(row.metric)) {
    result.predicted = memory_value(row, in, prediction);
    result.memory_of = in.profile.stack.memory.keeping;
    result.error = result.predicted / row.measured - 1;
    return result;
  }
  const Module& module = in.scenario.model.modules.front();
  result.step = prediction.step();
  if (in.recomputed) {
    PublishedCase kept = in;
    kept.layout.modules.front().recompute = Recompute::none;
    const Seconds least = std::get<Prediction>(predict_case(kept)).step();
    result.step = least + *in.recomputed * (result.step - least);
  }
  result.layout = in.layout;
  // Certainty is stated for shipped values only; the trials of a fit do not need it.
  if (overrides.empty())
    result.belief = make_belief(
        result.step,
        step_effects(prediction.program, prediction.compiled, in.scenario.cluster, in.profile),
        in.profile);
  result.measured_step = step_of(row, module, row.measured);
  result.predicted = value_of(row, module, result.step);
  result.error = result.step / result.measured_step - 1;
  result.naive = Seconds(naive_work(row, in));
  result.naive_efficiency = result.naive->count() / result.measured_step.count();
  return result;
}

}  // namespace

void apply_overrides(const Overrides& overrides, HardwareProfile& profile) {
  for (const auto& [name, value] : overrides) {
    const auto dot = name.find('.');
    const std::string owner = name.substr(0, dot), key = name.substr(dot + 1);
    if (owner == device_key(profile)) set_number(profile, key, value);
    if (owner == profile.stack.name) set_number(profile.stack, key, value);
  }
}

void check_overrides(const Overrides& overrides) {
  for (const auto& [name, value] : overrides) {
    const auto dot = name.find('.');
    const std::string owner = name.substr(0, dot),
                      key = dot == std::string::npos ? "" : name.substr(dot + 1);
    const SoftwareStack* stack = find_stack(owner);
    const HardwareProfile* profile = find_profile(default_profile(owner));
    if (stack == nullptr && profile == nullptr)
      throw InputError(
          Argument{"set"}, "", "\"" + owner + "\" is neither a device nor a stack",
          "write DEVICE.KEY=VALUE or STACK.KEY=VALUE, such as h100.gemm_efficiency=0.7");
    SoftwareStack a = stack ? *stack : SoftwareStack{};
    HardwareProfile b = profile ? *profile : HardwareProfile{};
    if (!(stack && set_number(a, key, value)) && !(profile && set_number(b, key, value)))
      throw InputError(Argument{"set"}, "", owner + " has no numeric parameter \"" + key + "\"",
                       "polyphony validate --help lists the keys");
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

}  // namespace polyphony::sim
