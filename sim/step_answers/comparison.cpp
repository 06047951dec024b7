#include "sim/step_answers/comparison.h"

#include "shared/hardware/devices.h"
#include "sim/text/layout_words.h"

namespace polyphony::sim {

RunComparison compare_run(const traces::Measurement& measured, const HardwareProfile& profile) {
  RunComparison result{
      measured.source, measured.layout(), profile.name, profile.stack.name, {}, {}};
  const ShippedDevice* device = find_device(profile.device.name);
  result.uncalibrated =
      device != nullptr && !device->fit && profile.name == default_profile(device->device.name);
  result.words =
      layout_words(measured.scenario.model, *measured.scenario.layout, measured.scenario.cluster);
  const std::size_t count = measured.steps.size();
  std::vector<Timeline> predicted;
  std::vector<traces::ComparedStep> steps;
  predicted.reserve(count);
  for (std::size_t s = 0; s < count; ++s) {
    auto outcome = predict(measured.step_programs[s], measured.scenario, profile,
                           Predictor::simulate, measured.pace);
    if (const auto* no = std::get_if<Infeasible>(&outcome))
      throw InputError(measured.scenario_file, "/cluster", no->reason,
                       "name a cluster with that link");
    Prediction& step = std::get<Prediction>(outcome);
    predicted.push_back(step.timeline);
    steps.push_back({measured.step_programs[s], predicted.back(), measured.steps[s]});
    if (s == measured.middle) result.prediction = std::move(step);
  }
  result.comparison = traces::compare(steps);
  return result;
}

}  // namespace polyphony::sim
