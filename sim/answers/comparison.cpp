#include "sim/answers/comparison.h"

namespace polyphony::sim {
RunComparison compare_run(const RecordedRun& run, const HardwareProfile& profile) {
  auto outcome = predict(run.scenario, *run.scenario.layout, run.program.batch, profile,
                         Predictor::simulate, run.pace);
  if (const auto* no = std::get_if<Infeasible>(&outcome))
    throw InputError(run.folder + "/scenario.json", "/cluster", no->reason,
                     "name a cluster with that link");
  RunComparison result{run.folder,
                       describe(run.scenario.model, *run.scenario.layout),
                       std::move(std::get<Prediction>(outcome)),
                       {}};
  result.comparison = traces::compare(run.program, result.prediction.timeline, run.steps);
  return result;
}

}  // namespace polyphony::sim
