// Computes the certainty of a fitted profile: the errors that the fit states about its own result
// (shared/hardware/certainty.h).
//
// Parameters that activities depended on: principal axes of their relative covariance, one standard
// deviation each, so that parameters that the traces could not separate move together and cancel
// where they cancelled in the traces. The prior of the fit is wide on purpose; as a stated error,
// no axis exceeds kWidest (the same axes under an independent prior of that deviation).
//
// A parameter that no activity depended on keeps the error of the prior profile, or kUnknown if the
// prior profile states none. Corrections absorb the errors of kernel efficiencies.
//
// layout_error: if there are three or more runs, computed from all pairs of runs: the difference of
// their remaining errors over the square root of the doublings between their layouts; otherwise
// kLayoutError.
//
// residual: the step errors of the runs themselves, plus one layout error, because predictions are
// asked for layouts other than the measured ones.
#pragma once

#include <vector>

#include "traces/calibrate/calibrate.h"
#include "traces/calibrate/features.h"

namespace polyphony::traces {

// Relative deviation of a latency or rate that was never measured. Assumed.
inline constexpr double kUnknown = 0.5;
inline constexpr double kWidest = 1;  // relative, assumed
// As in published rows, without separating tensor parallelism
// (shared/hardware/shipped_certainty.cpp). Ten two-rank layouts predicted from one of them
// (scripts/bench_prediction, first round: -0.9 to -10.9 %) have no larger spread.
inline constexpr double kLayoutError = 0.04;

struct Covariance {
  std::vector<double> of;      // [parameters, parameters], row-major, absolute
  std::vector<char> informed;  // by parameter: the time of some activity depends on it
};

// Returns the certainty of a profile with the fitted parameter values `value`. `errors` are the
// remaining errors of `runs`, in the same order; `step_error` is that of the calibration.
Certainty fitted_certainty(const ParameterList& list, const std::vector<double>& value,
                           const Covariance& covariance, const HardwareProfile& prior,
                           const std::vector<MeasuredRun>& runs,
                           const std::vector<RunError>& errors, double step_error);

}  // namespace polyphony::traces
