// Steps of one prediction on many days: jitter draws (shared/chance/jitter.h), each estimated or
// simulated, and their percentiles.
#pragma once

#include <functional>
#include <variant>
#include <vector>

#include "shared/hardware/certainty.h"
#include "sim/prediction/predict.h"

namespace polyphony::sim {

// Up to so many seeds are played on SimGrid, more are estimated.
inline constexpr int kSimulatedSeeds = 32;

struct JitteredSteps {
  std::vector<Seconds> steps;  // sorted
  bool simulated = false;
};
// Infeasible: a simulation needs a link the cluster does not have.
std::variant<JitteredSteps, Infeasible> jittered_steps(
    const Prediction& prediction, const Jitter& jitter, int seeds, Predictor predictor, int jobs,
    const std::function<void(double share)>& progress);

// "p50 29.0 s, p95 30.4 s, largest of 40: 31.2 s": quantiles that so few numbers do not reach share
// the largest.
std::string quantiles_text(const std::vector<Seconds>& sorted,
                           const std::vector<double>& quantiles);
bool reaches(std::size_t count, double q);

}  // namespace polyphony::sim
