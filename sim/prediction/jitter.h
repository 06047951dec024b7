// Variation of a predicted step: the step with random jitter (shared/chance/jitter.h), drawn many
// times, each estimated or simulated; and percentiles of these steps.
#pragma once

#include <functional>
#include <variant>
#include <vector>

#include "shared/hardware/certainty.h"
#include "sim/prediction/predict.h"

namespace polyphony::sim {

// Up to this many draws are simulated on SimGrid; if more are requested, all are estimated.
inline constexpr int kSimulatedSeeds = 32;

struct JitteredSteps {
  std::vector<Seconds> steps;  // sorted
  bool simulated = false;
};
// Returns `seeds` step times with jitter drawn from seeds 0, 1, …; or Infeasible if a simulation
// needs a link that the cluster does not have. Uses up to `jobs` threads; calls `progress`
// with the share done.
std::variant<JitteredSteps, Infeasible> jittered_steps(
    const Prediction& prediction, const Jitter& jitter, int seeds, Predictor predictor, int jobs,
    const std::function<void(double share)>& progress);

// Returns a text such as "p50 29.0 s, p95 30.4 s, largest of 40: 31.2 s". A quantile that needs
// more values than there are (see reaches) is omitted, and the largest value is given instead.
std::string quantiles_text(const std::vector<Seconds>& sorted,
                           const std::vector<double>& quantiles);
// Returns whether `count` values are enough for quantile `q`: count · (1 - q) is at least 1.
bool reaches(std::size_t count, double q);

}  // namespace polyphony::sim
