#include "sim/answers/comparison.h"

namespace polyphony::sim {

RunComparison compare_run(const traces::Measurement& measured, const HardwareProfile& profile) {
  auto outcome = predict(measured.scenario, *measured.scenario.layout, measured.program.batch,
                         profile, Predictor::simulate, measured.pace);
  if (const auto* no = std::get_if<Infeasible>(&outcome))
    throw InputError(measured.scenario_file, "/cluster", no->reason,
                     "name a cluster with that link");
  RunComparison result{measured.source,
                       measured.layout(),
                       profile.name,
                       profile.stack.name,
                       std::move(std::get<Prediction>(outcome)),
                       {}};
  result.comparison = traces::compare(measured.program, result.prediction.timeline, measured.steps);
  return result;
}

}  // namespace polyphony::sim
