#include "sim/evidence/fitted_profile.h"

#include <algorithm>

namespace polyphony::sim {
namespace {

constexpr double kLeastRingError = 0.02;

void fit_runs(const std::vector<traces::Measurement>& runs, const std::string& name,
              FittedProfile& fitted) {
  const HardwareProfile prior = fitted.profile;
  std::vector<traces::MeasuredRun> measured;
  std::string source = "traces of";
  for (const traces::Measurement& run : runs) {
    measured.push_back(traces::measured_run(run));
    source += " " + run.source;
  }
  const auto fit = [&](const HardwareProfile& from, const std::vector<traces::MeasuredRun>& to) {
    return traces::calibrate(from, to, name, prior.software, source);
  };
  for (std::size_t out = 0; out < measured.size() && measured.size() > 1; ++out) {
    std::vector<traces::MeasuredRun> others = measured;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(out));
    fitted.unseen.push_back(fit(fit(prior, others).profile, {measured[out]}).runs.front().before);
  }
  fitted.runs = fit(prior, measured);
  fitted.profile = fitted.runs->profile;
}

}  // namespace

FittedProfile fit_profile(const HardwareProfile& prior,
                          const std::vector<traces::Measurement>& runs,
                          const std::vector<StepEvidence>& steps, const std::string& name) {
  FittedProfile fitted;
  fitted.profile = prior;
  if (!runs.empty()) fit_runs(runs, name, fitted);
  if (!steps.empty()) {
    fitted.steps = calibrate_steps(fitted.profile, steps, name);
    fitted.profile = fitted.steps->profile;
  }
  return fitted;
}

const char* ring_parameter(const traces::CollectiveTimes& table) {
  return table.nodes > 1 ? "fabric_efficiency" : "collective_efficiency";
}

HardwareProfile fitted_rings(const traces::CollectiveFit& fit,
                             const traces::CollectiveTimes& table) {
  HardwareProfile profile = fit.profile;
  const std::string key = ring_parameter(table);
  profile.certainty.misses.clear();  // their effects are of the errors before
  std::erase_if(profile.certainty.errors, [&](const ParameterError& error) {
    return error.size() == 1 && error.begin()->first == key;
  });
  profile.certainty.errors.push_back({{key, std::max(kLeastRingError, fit.error_after)}});
  return profile;
}

}  // namespace polyphony::sim
