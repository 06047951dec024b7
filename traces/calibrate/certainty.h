// What a fit knows of its own errors, as the certainty of the profile it makes
// (shared/hardware/certainty.h).
//   Parameters that activities stood for: principal axes of their relative covariance, one standard
//   deviation each, so that what the traces could not tell apart moves together and cancels where
//   it did in the traces. The fit's own prior is wide on purpose; as a belief, no axis is off by
//   more than kWidest (the same axes under an independent prior of that deviation). A parameter
//   that nothing stood for keeps the prior profile's own error, or kUnknown where that states none.
//   Corrections absorb what kernel efficiencies are off by. layout_error: from the pairs of three
//   runs or more, their remaining errors apart over the root of the doublings between their layouts;
//   else kLayoutError. residual: what the runs' own steps are off by, and beside it one layout error: nobody
//   asks for the layouts that were measured.
#pragma once

#include <vector>

#include "traces/calibrate/calibrate.h"
#include "traces/calibrate/features.h"

namespace polyphony::traces {

// Of a latency or rate that was never seen, assumed.
inline constexpr double kUnknown = 0.5;
inline constexpr double kWidest = 1;  // relative, assumed
// As in published rows, tensor parallelism not told apart (shared/hardware/shipped_certainty.cpp); ten
// two-rank layouts predicted from one of them (scripts/bench_prediction, first round: -0.9 to -10.9 %)
// spread no more than that.
inline constexpr double kLayoutError = 0.04;

struct Covariance {
  std::vector<double> of;      // parameters × parameters, row by row, absolute
  std::vector<char> informed;  // by parameter: some activity stood for it
};

Certainty fitted_certainty(const ParameterList& list, const std::vector<double>& value,
                           const Covariance& covariance, const HardwareProfile& prior,
                           const std::vector<MeasuredRun>& runs,
                           const std::vector<RunError>& errors, double step_error);

}  // namespace polyphony::traces
