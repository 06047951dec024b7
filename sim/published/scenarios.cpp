#include "sim/published/scenarios.h"

#include <algorithm>
#include <map>

#include "shared/check/check.h"
#include "shared/cost/model_flops.h"
#include "shared/hardware/devices.h"
#include "shared/hardware/shipped_certainty.h"
#include "shared/scenario/typical_batch.h"
#include "shared/scenario_io/scenario_profile.h"
#include "shared/text/quantity_text.h"
#include "shared/text/strict_json.h"
#include "sim/prediction/effects.h"
#include "sim/prediction/figures.h"
#include "sim/published/case_parts.h"

namespace polyphony::sim {
namespace {

std::string stem_of(const std::string& file) {
  const auto slash = file.rfind('/');
  const std::string name = slash == std::string::npos ? file : file.substr(slash + 1);
  return name.substr(0, name.rfind('.'));
}

// Returns a result with the measured value, not yet predicted.
RowResult describe(const JsonValue& value, const std::string& file, const Scenario& scenario) {
  RowResult result;
  PublishedRow& row = result.row;
  const std::string stem = stem_of(file);
  row.file = file;
  row.block = row.family = stem.substr(0, stem.find('_'));
  row.id = stem + "." + value.at("what").text();
  row.source = value.at("source").text();
  row.gpus = scenario.cluster.ranks();
  row.gpu_type = scenario.cluster.device.name;
  row.precision = name(scenario.training.precision);
  if (value.has("assumed"))
    for (std::size_t i = 0; i < value.at("assumed").size(); ++i)
      row.assumed.push_back(value.at("assumed").at(i).text());
  if (value.at("what").text() == "step_time") {
    row.metric = Metric::iteration_time;
    row.unit = "s";
    result.measured_step = parse_seconds(value.at("value").text());
    row.measured = result.measured_step.count();
  } else {
    row.metric = Metric::peak_memory;
    row.unit = "GB";
    row.measured = static_cast<double>(parse_bytes(value.at("value").text()).value) / 1e9;
  }
  if (row.measured <= 0) value.refuse_at("value", "is not positive", "give the measured value");
  return result;
}

// What the measured software ran: its stack, and its attention kernels if they are stated (the
// words of the CSV column "attention").
struct Measured {
  std::string stack, attention;
  auto operator<=>(const Measured&) const = default;
};

HardwareProfile profile_of(const Scenario& scenario, const Measured& measured) {
  HardwareProfile profile = *shipped_profile(scenario.cluster);
  if (!measured.stack.empty()) profile.stack = *find_stack(measured.stack);
  take_attention(measured.attention, scenario.cluster.device, profile);
  return profile;
}

// Predicts the scenario once per measured software.
class Predictions {
 public:
  Predictions(const Scenario& scenario, const Overrides& overrides)
      : scenario_(scenario), overrides_(overrides) {}

  const std::variant<Prediction, Infeasible>& of(const Measured& measured) {
    const auto known = known_.find(measured);
    if (known != known_.end()) return known->second;
    HardwareProfile profile = profile_of(scenario_, measured);
    take_layer_times(scenario_, profile);
    apply_overrides(overrides_, profile);
    return known_
        .emplace(measured, predict(scenario_, *scenario_.layout, typical_batch(scenario_), profile,
                                   Predictor::estimate))
        .first->second;
  }

 private:
  const Scenario& scenario_;
  const Overrides& overrides_;
  std::map<Measured, std::variant<Prediction, Infeasible>> known_;
};

// Adds the uncertainty of the prediction, and the naive baseline.
void add_beliefs(const Scenario& scenario, const Measured& measured, const Overrides& overrides,
                 const Prediction& prediction, RowResult& result) {
  const Layout& layout = *scenario.layout;
  if (overrides.empty()) {
    HardwareProfile profile = profile_of(scenario, measured);
    state_certainty(profile);
    result.certainty = profile.certainty;
    result.belief =
        make_belief(result.step, step_effects(scenario, layout, prediction, profile), profile);
  }
  const double bubble =
      1 + (layout.modules.back().pp - 1.0) / (layout.modules.back().vpp * layout.microbatches);
  result.naive = Seconds(
      model_flops(prediction.program.model, prediction.program.batch, prediction.program.precision)
          .value /
      (scenario.cluster.ranks() * prediction.peak.value) * bubble);
  result.naive_efficiency = result.naive->count() / result.measured_step.count();
}

}  // namespace

std::vector<RowResult> run_scenario(const std::string& text, const std::string& file,
                                    const Scenario& scenario, const Overrides& overrides) {
  const JsonValue root = JsonValue::parse(text, file);
  if (!root.has("published"))
    root.refuse("key \"published\" is missing", "list what was measured with this layout");
  const JsonValue list = root.at("published");
  Predictions predictions(scenario, overrides);
  std::vector<RowResult> results;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonValue value = list.at(i);
    RowResult result = describe(value, file, scenario);
    const auto again = std::count_if(results.begin(), results.end(), [&](const RowResult& other) {
      return other.row.id.starts_with(result.row.id);
    });
    if (again > 0) result.row.id += "_" + std::to_string(again + 1);
    Measured measured;
    value.read("stack", measured.stack);
    value.read("attention", measured.attention);
    const std::string& stack = measured.stack;
    result.device = scenario.cluster.device.name;
    result.stack = stack.empty() ? SoftwareStack{}.name : stack;
    if (!shipped_profile(scenario.cluster)) {
      result.reason = "device \"" + scenario.cluster.device.name + "\" has no profile";
    } else if (!scenario.layout) {
      result.reason = "the scenario has no layout";
    } else if (const auto no = check_layout(scenario, *scenario.layout)) {
      result.reason = no->reason;
    } else if (const auto& outcome = predictions.of(measured);
               std::holds_alternative<Infeasible>(outcome)) {
      result.reason = std::get<Infeasible>(outcome).reason;
    } else {
      const auto& prediction = std::get<Prediction>(outcome);
      const Figures predicted = figures(scenario, prediction);
      if (is_memory(result.row.metric)) {
        result.predicted = static_cast<double>(predicted.peak_memory.value) / 1e9;
        if (const SoftwareStack* known = find_stack(stack))
          result.memory_of = known->memory.keeping;
      } else {
        result.step = predicted.step;
        result.predicted = result.step.count();
        result.layout = *scenario.layout;
        // If the scenario gives layer times, no profile states their uncertainty, and there is no
        // peak for the naive baseline.
        if (scenario.layer_times.empty())
          add_beliefs(scenario, measured, overrides, prediction, result);
      }
      result.error = result.predicted / result.row.measured - 1;
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace polyphony::sim
